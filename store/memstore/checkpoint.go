package memstore

import (
	"cmp"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkpoint replaces the task's checkpoint of the given name.
func (o *op) checkpoint(r *row, rec *store.Record) store.RecordResult {
	kept := o.checkpoints[r.ID]
	i, found := slices.BinarySearchFunc(kept, rec.Checkpoint.Name, func(c task.Checkpoint, name string) int { return cmp.Compare(c.Name, name) })
	var stood *task.Checkpoint
	if found {
		stood = &kept[i]
	}
	cp, same := rules.AcceptCheckpoint(stood, rec, r.AttemptNo, o.now)
	if same {
		return store.RecordResult{Same: true}
	}
	r.CrashCount, r.QuarantineLosses = 0, 0
	if cp = copyCheckpoint(cp); found {
		kept[i] = cp
	} else {
		o.checkpoints[r.ID] = slices.Insert(kept, i, cp)
	}
	return store.RecordResult{}
}

func copyCheckpoint(c task.Checkpoint) task.Checkpoint {
	c.Value = copyRaw(c.Value)
	return c
}
