package memstore

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// expiry holds the times at which fields of an input expire.
type expiry struct {
	setAt time.Time // the time at which the input was stored
	look  time.Time // the time of the next check
}

// watchExpiry records when fields of a task's new input expire.
func (o *op) watchExpiry(r *row, list []task.Expiry) {
	if next := task.NextExpiry(list, 0); next > 0 {
		o.expiries[r.ID] = &expiry{setAt: o.now, look: o.now.Add(next)}
	}
}

// collectExpiries returns the tasks with expired input fields.
func (o *op) collectExpiries() (due []store.DueExpiry) {
	var ids []task.ID
	for id, e := range o.expiries {
		if !e.look.After(o.now) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b task.ID) int {
		if c := o.expiries[a].look.Compare(o.expiries[b].look); c != 0 {
			return c
		}
		return a.Compare(b)
	})
	for _, id := range ids[:min(len(ids), store.ExpiryBite)] {
		r, e := o.tasks[id], o.expiries[id]
		if r == nil || r.ValuesDropped {
			delete(o.expiries, id)
			continue
		}
		e.look = o.now.Add(rules.ExpiryLook)
		if r.State.Terminal() {
			due = append(due, store.DueExpiry{Task: id, Elapsed: o.now.Sub(e.setAt)})
		}
	}
	return due
}

// expireInput replaces an input with one without the expired fields.
func (o *op) expireInput(cmd store.ExpireInput) store.CommandResult {
	r, res := o.find(cmd.Task, store.Seen{})
	if res.Err != nil {
		return res
	}
	if res.Err = rules.CheckExpire(&cmd, r.State, task.PayloadHash(r.Input)); res.Err != nil {
		return res
	}
	if len(cmd.Input) > 0 {
		if res.Err = o.usable(rules.InputBlobs(cmd.Input)); res.Err != nil {
			return res
		}
		setAt := o.expiries[r.ID]
		o.setInput(r, cmd.Input, r.SchemaVersion)
		if setAt != nil {
			o.expiries[r.ID] = setAt
		}
		o.note(cmd.Audit, rules.ExpiryVerb, r.ID.String())
	}
	if e := o.expiries[r.ID]; e != nil && cmd.Next > 0 {
		e.look = e.setAt.Add(cmd.Next)
	} else {
		delete(o.expiries, r.ID)
	}
	return res
}
