package weaver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// known reads tasks and refuses those to which the verb does not apply.
func (b *bulk) known(ctx context.Context, ids []TaskID) ([]TaskInfo, error) {
	got, err := b.c.store.Tasks(ctx, b.c.ns, ids...)
	if err != nil {
		return nil, err
	}
	byID := make(map[TaskID]*TaskInfo, len(got))
	for i := range got {
		byID[got[i].ID] = &got[i]
	}
	var tasks []TaskInfo
	for _, id := range ids {
		switch t := byID[id]; {
		case t == nil:
			b.refuse(id, b.c.noTask(id))
		case !slices.Contains(b.verb.states, t.State):
			b.refuse(id, fmt.Errorf("task %s is %s; the states are %v: %w", id, t.State, b.verb.states, ErrState))
		default:
			tasks = append(tasks, *t)
		}
	}
	return tasks, nil
}

func (b *bulk) refuse(id TaskID, err error) {
	b.res.Refused = append(b.res.Refused, ops.RefusedTask{ID: id, Err: err})
}

// each changes or examines tasks. stopped is the last task examined before the deadline.
func (b *bulk) each(ctx context.Context, tasks []TaskInfo) (stopped string, err error) {
	if b.req.DryRun {
		return b.lookAt(ctx, tasks)
	}
	kept := tasks[:0]
	for i := range tasks {
		if !b.refuses(&tasks[i]) {
			kept = append(kept, tasks[i])
		}
	}
	return "", b.change(ctx, kept)
}

// refuses refuses a task whose refusal is known in advance.
func (b *bulk) refuses(t *TaskInfo) bool {
	if b.verb.refuse == nil {
		return false
	}
	err := b.verb.refuse(&b.set, t)
	if err != nil {
		b.refuse(t.ID, err)
	}
	return err != nil
}

func (b *bulk) lookAt(ctx context.Context, tasks []TaskInfo) (stopped string, err error) {
	for i := range tasks {
		b.sight.selected[tasks[i].ID] = true
	}
	for i := range tasks {
		t := &tasks[i]
		if !b.refuses(t) {
			if err := b.look(ctx, t); err != nil {
				return "", err
			}
		}
		if i < len(tasks)-1 && b.over() {
			return t.ID.String(), nil
		}
	}
	return "", nil
}

// look is the dry run of change for one task.
func (b *bulk) look(ctx context.Context, t *TaskInfo) error {
	if b.verb.foresee != nil && b.looked < maxForeseen {
		b.looked++
		h, err := b.c.store.History(ctx, b.c.ns, t.ID)
		if errors.Is(err, ErrNotFound) { // deleted meanwhile
			b.res.AlreadyDone++
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the history of task %s: %w", t.ID, err)
		}
		refused, err := b.verb.foresee(&b.sight, ctx, &h)
		if err != nil {
			return err
		}
		if refused != nil {
			b.refuse(t.ID, refused)
			return nil
		}
	}
	b.res.Done++
	if b.verb.undoes && preview.UndoneFirst(t) {
		b.res.UndoneFirst++
	}
	if b.res.States == nil {
		b.res.States = make(map[State]int)
	}
	b.res.States[t.State]++
	if b.whole || len(b.res.Samples) < bulkSamples {
		b.res.Samples = append(b.res.Samples, ops.ManyTask{ID: t.ID, Type: t.Type, Queue: t.Queue, State: t.State})
	}
	return nil
}

// change applies the verb to tasks at the version seen. A task that has changed is read again.
func (b *bulk) change(ctx context.Context, tasks []TaskInfo) error {
	for try := 1; len(tasks) > 0; try++ {
		cmds := make([]store.Command, len(tasks))
		for i := range tasks {
			set := b.set
			if b.query != nil && !b.whole {
				set.seen.Epoch = tasks[i].Epoch
				if t := &tasks[i]; t.State.Terminal() || t.State == StateBlocked { // others change by themselves
					set.seen.UpdatedAt = t.UpdatedAt
				}
			}
			cmds[i] = b.verb.command(&set, tasks[i].ID)
		}
		got, err := b.c.store.Operate(ctx, b.c.ns, cmds...)
		if err != nil {
			return err
		}
		var changed []TaskID
		for i := range got {
			r, id := &got[i], tasks[i].ID
			switch {
			case r.Err == nil:
				b.res.Done++
				if r.Asked {
					b.res.Asked++
				}
			case errors.Is(r.Err, store.ErrChanged) && try < bulkTries:
				changed = append(changed, id)
			case b.verb.done(r):
				b.res.AlreadyDone++
			default:
				b.refuse(id, r.Err)
				b.again = append(b.again, id)
			}
		}
		if tasks, err = b.still(ctx, changed); err != nil {
			return err
		}
	}
	return nil
}

// still reads changed tasks and returns those that still match.
func (b *bulk) still(ctx context.Context, ids []TaskID) ([]TaskInfo, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	tasks, err := b.c.store.Tasks(ctx, b.c.ns, ids...)
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(tasks, func(t TaskInfo) bool { return !b.selects(ctx, &t) })
	b.res.AlreadyDone += len(ids) - len(kept)
	return kept, nil
}

// selects reports whether the verb applies to a task.
func (b *bulk) selects(ctx context.Context, t *TaskInfo) bool {
	if b.query == nil {
		return slices.Contains(b.verb.states, t.State)
	}
	if !b.query.Filter.Selects(t) || b.tooYoung(t) || !b.req.Newest.IsZero() && t.ID.Compare(b.req.Newest) > 0 {
		return false
	}
	found, _ := b.c.matches(ctx, b.query, t, later(b.until, time.Now().Add(searchTime/2)))
	return found
}

// selectsID is selects for a need.
func (b *bulk) selectsID(ctx context.Context, id TaskID) (bool, error) {
	tasks, err := b.c.store.Tasks(ctx, b.c.ns, id)
	return len(tasks) > 0 && b.selects(ctx, &tasks[0]), err
}

// twice retries tasks that the store refused: needs are often older than their dependents.
func (b *bulk) twice(ctx context.Context) error {
	if !b.verb.twice || len(b.again) == 0 || b.over() {
		return nil
	}
	ids := b.again
	b.again = nil
	slices.Reverse(ids)
	for batch := range slices.Chunk(ids, b.batch()) {
		before := slices.Clone(b.res.Refused)
		b.res.Refused = slices.DeleteFunc(b.res.Refused, func(r ops.RefusedTask) bool { return slices.Contains(batch, r.ID) })
		tasks, err := b.still(ctx, batch)
		if err == nil {
			order := make(map[TaskID]int, len(batch))
			for i, id := range batch {
				order[id] = i
			}
			slices.SortFunc(tasks, func(x, y TaskInfo) int { return order[x.ID] - order[y.ID] })
			err = b.change(ctx, tasks)
		}
		if err != nil {
			b.res.Refused = before
			return err
		}
	}
	return nil
}
