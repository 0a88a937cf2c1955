package weaver_test

import (
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// The graph of a job, the audit, and one part of the overview.
func TestGraphAndAudit(t *testing.T) {
	typ := weaver.Define[int, int]("client.graph.run.v1")
	inBubble(t, func(fx *fixture) {
		job := weaver.NewJob("graph")
		a := job.Add("a", typ.With(1))
		job.Add("b", typ.With(2), weaver.Needs(a))
		h, err := fx.client.Submit(fx.Context(), job)
		fx.must(err)
		g, err := fx.client.Graph(fx.Context(), store.GraphRequest{Job: h.ID()})
		fx.must(err)
		if len(g.Nodes) != 2 || len(g.Edges) != 1 || g.Next != "" || g.Nodes[0].Node != "a" || g.Edges[0].From != g.Nodes[0].ID || g.Edges[0].To != g.Nodes[1].ID {
			fx.Errorf("the graph is %+v", g)
		}
		_, err = fx.client.Graph(fx.Context(), store.GraphRequest{Job: g.Nodes[0].ID})
		wantError(fx, err, weaver.ErrNotFound, "read the graph of job "+g.Nodes[0].ID.String())

		fx.must(fx.client.PauseQueue(fx.Context(), "billing", weaver.By("ann")))
		fx.must(fx.client.ResumeQueue(fx.Context(), "billing", weaver.By("bob")))
		list, next, err := fx.client.Audit(fx.Context(), store.AuditFilter{Limit: 1})
		fx.must(err)
		if len(list) != 1 || list[0].Actor != "bob" || next == "" {
			fx.Fatalf("the audit is %+v, next %q", list, next)
		}
		list, next, err = fx.client.Audit(fx.Context(), store.AuditFilter{After: next})
		fx.must(err)
		if len(list) != 1 || list[0].Actor != "ann" || list[0].Verb != "pause" || list[0].Target != "billing" || next != "" {
			fx.Errorf("the audit goes on with %+v, next %q", list, next)
		}
		_, _, err = fx.client.Audit(fx.Context(), store.AuditFilter{After: "x"})
		wantError(fx, err, store.ErrBadCursor, "read the audit", `"x"`)

		o, err := fx.client.Overview(fx.Context(), store.OverviewRequest{Parts: store.OverviewCounts})
		fx.must(err)
		equal(fx, "tasks of the type", o.Counts.Types[typ.Name()], store.Count{N: 2})
		equal(fx, "queues that were not asked for", len(o.Queues), 0)
	})
}
