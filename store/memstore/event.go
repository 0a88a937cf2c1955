package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Events implements store.Observe.
func (s *Store) Events(ctx context.Context, ns string, id task.ID, after int64, limit int) ([]store.EventRow, error) {
	var rows []store.EventRow
	err := s.do(ctx, ns, func(o *op) {
		kept := o.events[id]
		from, _ := slices.BinarySearchFunc(kept, after+1, bySeq)
		rows = copyAll(kept[from:min(len(kept), from+rules.EventLimit(limit))], copyEvent)
	})
	return rows, err
}

// addEvents stores the rows of an accepted report.
func (o *op) addEvents(l task.Lease, rows []store.EventRow) {
	r, ok := o.tasks[l.Task]
	if !ok || len(rows) == 0 {
		return
	}
	kept := o.events[l.Task]
	for _, row := range rows {
		if i, taken := slices.BinarySearchFunc(kept, row.Seq, bySeq); !taken {
			kept = slices.Insert(kept, i, copyEvent(row))
			o.tellEvent(r, &row)
		}
	}
	o.events[l.Task] = kept
	o.notice.Events = append(o.notice.Events, l.Task)
}

func bySeq(row store.EventRow, seq int64) int { return cmp.Compare(row.Seq, seq) }

func copyEvent(row store.EventRow) store.EventRow {
	row.Body = copyRaw(row.Body)
	return row
}
