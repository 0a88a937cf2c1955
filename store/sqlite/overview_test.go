package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Counts stop at their limit, and inexact counts are marked.
func TestOverviewCountsSoFar(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.CountTo(3)))
	exactly := func(n int) store.Count { return store.Count{N: n} }
	many := store.Count{N: 3, More: true}
	want := func(what string, states map[task.State]store.Count, due, running, ofType store.Count) {
		t.Helper()
		o, err := f.db.Overview(t.Context(), fixNS, store.OverviewRequest{Parts: store.OverviewCounts | store.OverviewQueues})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range task.States() {
			if o.Counts.States[s] != states[s] {
				t.Errorf("%s: %v are %s, want %v", what, o.Counts.States[s], s, states[s])
			}
		}
		if got := o.Counts.Types[fixType]; got != ofType {
			t.Errorf("%s: %v of the type, want %v", what, got, ofType)
		}
		if got := o.Counts.Queues[task.DefaultQueue]; got != ofType {
			t.Errorf("%s: %v of the queue, want %v", what, got, ofType)
		}
		if due.N+running.N == 0 {
			if len(o.Queues) > 0 {
				t.Errorf("%s: the queues are %+v, want none", what, o.Queues)
			}
		} else if len(o.Queues) != 1 || o.Queues[0].Due != due || o.Queues[0].Running != running || (due.N > 0) == o.Queues[0].OldestDue.IsZero() {
			t.Errorf("%s: the queues are %+v, want %v due and %v running", what, o.Queues, due, running)
		}
	}
	f.enqueue(3)
	want("three", map[task.State]store.Count{task.Ready: exactly(3)}, exactly(3), exactly(0), exactly(3))
	f.enqueue(1)
	want("four", map[task.State]store.Count{task.Ready: many}, many, exactly(0), many)
	f.finish(f.claim("w", 2)...)
	want("two ended", map[task.State]store.Count{task.Ready: exactly(2), task.Succeeded: exactly(2)}, exactly(2), exactly(0), many)
	claims := f.claim("w", 2)
	want("two run", map[task.State]store.Count{task.Running: exactly(2), task.Succeeded: exactly(2)}, exactly(0), exactly(2), many)
	f.finish(claims...)
	want("four ended", map[task.State]store.Count{task.Succeeded: many}, exactly(0), exactly(0), many)
}

// Succeeded tasks are the remainder of many tasks once the others are counted.
func TestOverviewCountsTheRest(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.CountTo(3)))
	for range 3 {
		f.fail(f.enqueue(1)[0])
	}
	for _, id := range f.enqueue(3) {
		f.operate(store.CancelTask{Task: id})
	}
	f.finish(f.claim("w", len(f.enqueue(2)))...)
	succeeded := func() store.Count {
		o, err := f.db.Overview(t.Context(), fixNS, store.OverviewRequest{Parts: store.OverviewCounts})
		if err != nil {
			t.Fatal(err)
		}
		return o.Counts.States[task.Succeeded]
	}
	if got := succeeded(); got != (store.Count{N: 2}) {
		t.Errorf("behind six that did not succeed: %v, want 2", got)
	}
	f.fail(f.enqueue(1)[0])
	if got := succeeded(); got != (store.Count{More: true}) {
		t.Errorf("behind more that failed than are counted: %v, want at least 0", got)
	}
}

// A page of a graph ends before it has too many edges, and has at least one node. All pages
// together are the graph.
func TestAPageOfAGraphHasABoundedNumberOfEdges(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.GraphEdges(3)))
	sub := f.drafts(5)
	sub.Job = &task.NewJob{ID: f.ids.New(), Name: "dense"}
	for i := range sub.Tasks {
		sub.Tasks[i].Node = string(rune('a' + i))
		for _, need := range sub.Tasks[:i] {
			sub.Tasks[i].Needs = append(sub.Tasks[i].Needs, task.Edge{Needs: need.ID, Kind: task.OnSuccess})
		}
	}
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	var pages []string
	edges := 0
	for req := (store.GraphRequest{Job: sub.Job.ID}); len(pages) == 0 || req.After != ""; {
		g, err := f.db.Graph(t.Context(), fixNS, req)
		if err != nil || len(g.Nodes) == 0 || len(pages) > 5 {
			t.Fatalf("page %d: %+v, %v", len(pages), g, err)
		}
		page := ""
		for _, n := range g.Nodes {
			page += n.Node
		}
		for _, e := range g.Edges {
			if e.To.Compare(g.Nodes[0].ID) < 0 || e.To.Compare(g.Nodes[len(g.Nodes)-1].ID) > 0 {
				t.Errorf("page %q has the edge %+v of another one", page, e)
			}
		}
		pages, edges, req.After = append(pages, page), edges+len(g.Edges), g.Next
	}
	if want := []string{"abc", "d", "e"}; !slices.Equal(pages, want) || edges != 10 {
		t.Errorf("the pages are %q with %d edges, want %q with 10", pages, edges, want)
	}
}

// A page of the audit reads a bounded number of entries, even if few match.
func TestAPageOfTheAuditLooksAtABoundedNumberOfEntries(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.ListLooks(10)))
	for i := range 25 {
		by := "ann"
		if i == 3 {
			by = "bob"
		}
		f.operate(store.PauseQueue{Audit: store.Audit{By: by}, Queue: "x"})
	}
	filter := store.AuditFilter{Actor: "bob"}
	for page, want := range []int{0, 0, 1} {
		list, next, err := f.db.Audit(t.Context(), fixNS, filter)
		if err != nil || len(list) != want || (next == "") != (page == 2) {
			t.Fatalf("page %d: %+v, next %q, %v; want %d", page, list, next, err, want)
		}
		filter.After = next
	}
}
