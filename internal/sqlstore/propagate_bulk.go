package sqlstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/task"
)

// BulkOps are the set-based statements for the effects of a batch; see ops.
type BulkOps interface {
	// OpenEdges selects open edges towards ended tasks, sorted by need and dependent:
	// depends_on_task_id, task_id, kind, step, awaited. It returns up to n for each need, and
	// n in all.
	OpenEdges(t *Tx, ended []propagate.Ended, n int) *sqlstmt.Stmt
	// MarkEdges marks edges as done, each with its kept error, which may be nil.
	MarkEdges(t *Tx, edges []MarkedEdge) error
	// LowerNeeds is LowerNeeds of propagate.Ops. Its rows are DependentColumns.
	LowerNeeds(t *Tx, marked []propagate.Marked) *sqlstmt.Stmt
	// MakeReady is MakeReady of propagate.Ops.
	MakeReady(t *Tx, tasks []propagate.Ready) error
}

// MarkedEdge is an edge whose need has ended.
type MarkedEdge struct {
	Dependent, Need task.ID
	State           task.State
	Kept            *task.Error // error of the need, for a dependent that awaits it
}

// markAll is MarkEdges for at most limit edges. With more edges it does nothing and few is
// false.
func (o ops) markAll(ended []propagate.Ended, limit int) (edges []propagate.Edge, few bool, err error) {
	ends := make(map[task.ID]task.End, len(ended))
	for i := range ended {
		ends[ended[i].ID] = ended[i].End
	}
	var marks []MarkedEdge
	var awaited []bool
	st := o.tx.bulk.OpenEdges(o.tx, ended, limit+1)
	for st.Next() {
		e := propagate.Edge{
			Dependent: st.ColID(1), Step: st.ColText(3),
			EndedNeed: rules.EndedNeed{Need: st.ColID(0), Kind: task.EdgeKind(st.ColName(2)), End: ends[st.ColID(0)]},
		}
		edges = append(edges, e)
		marks = append(marks, MarkedEdge{Dependent: e.Dependent, Need: e.Need, State: e.End.State})
		awaited = append(awaited, st.ColInt(4) > 0)
	}
	if err := st.Done(); err != nil || len(edges) > limit {
		return nil, false, err
	}
	for i := range marks {
		if awaited[i] {
			if marks[i].Kept, err = o.tx.endedError(&marks[i].Need, marks[i].State); err != nil {
				return nil, false, err
			}
		} else {
			marks[i].State = ""
		}
	}
	if len(marks) > 0 {
		err = o.tx.bulk.MarkEdges(o.tx, marks)
	}
	return edges, true, err
}

// lowerAll is LowerNeeds.
func (o ops) lowerAll(marked []propagate.Marked) ([]propagate.Dependent, error) {
	deps, err := DependentColumns.All(o.tx.bulk.LowerNeeds(o.tx, marked))
	slices.SortFunc(deps, func(a, b propagate.Dependent) int { return a.ID.Compare(b.ID) })
	return deps, err
}
