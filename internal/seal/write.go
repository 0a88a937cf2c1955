package seal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Enqueue implements store.Core.
func (c *sealed) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) (got []store.Enqueued, err error) {
	if sub.Tasks, err = c.s.inputs(sub.Tasks); err != nil {
		return nil, err
	}
	return c.Store.Enqueue(ctx, ns, tx, sub)
}

// inputs returns tasks with their inputs sealed.
func (s *Sealer) inputs(tasks []task.New) (_ []task.New, err error) {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		n := &tasks[i]
		if n.Input, err = s.Seal(InputOf(n.ID, n.Type), n.Input); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

// Operate implements store.Ops.
func (c *sealed) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	below := make([]store.Command, len(cmds))
	for i, cmd := range cmds {
		var err error
		switch cmd := cmd.(type) {
		case store.UnblockTask:
			cmd.Input, err = c.s.Seal(Place{Task: cmd.Task, Kind: Unblock}, cmd.Input)
			below[i] = cmd
		case store.SendSignal:
			cmd.Payload, err = c.s.Seal(SignalOf(cmd.Task, cmd.Name), cmd.Payload)
			below[i] = cmd
		case store.ReplaceInput:
			err = c.replace(ctx, ns, &cmd)
			below[i] = cmd
		case store.ExpireInput:
			err = c.expire(ctx, ns, &cmd)
			below[i] = cmd
		case store.RerunTask:
			cmd.New.Input, err = c.s.Seal(InputOf(cmd.New.ID, cmd.New.Type), cmd.New.Input)
			below[i] = cmd
		case store.WriteSchedule:
			err = c.s.schedule(&cmd)
			below[i] = cmd
		default:
			below[i] = cmd
		}
		if err != nil {
			return nil, err
		}
	}
	got, err := c.Store.Operate(ctx, ns, below...)
	if err != nil {
		return got, err
	}
	for i := range got {
		if cmd, ok := cmds[i].(store.ReplaceInput); ok && errors.Is(got[i].Err, store.ErrChanged) {
			if got[i], err = c.replaceAgain(ctx, ns, cmd, got[i]); err != nil {
				return nil, err
			}
		}
		if sent, ok := cmds[i].(store.SendSignal); ok && errors.Is(got[i].Err, store.ErrConflict) {
			if again, err := c.sentBefore(ctx, ns, &sent); err != nil {
				got[i].Err = err
			} else if again != nil {
				got[i] = *again
			}
		}
	}
	return got, nil
}

// schedule seals what a schedule enqueues, and the inputs of its runs.
func (s *Sealer) schedule(cmd *store.WriteSchedule) (err error) {
	if cmd.Work, err = s.Seal(ScheduleOf(cmd.Name), cmd.Work); err != nil {
		return err
	}
	cmd.Fires = slices.Clone(cmd.Fires)
	for i := range cmd.Fires {
		if run := cmd.Fires[i].Run; run != nil {
			sub := *run
			if sub.Tasks, err = s.inputs(run.Tasks); err != nil {
				return err
			}
			cmd.Fires[i].Run = &sub
		}
	}
	return nil
}

// replace converts a command for the store below: the seen input, if it is unchanged, or the
// new input becomes the stored hash and value.
func (c *sealed) replace(ctx context.Context, ns string, cmd *store.ReplaceInput) error {
	tasks, err := c.Store.Tasks(ctx, ns, cmd.Task)
	if err != nil || len(tasks) == 0 {
		return err // the store returns the error
	}
	place := InputOf(cmd.Task, tasks[0].Type)
	stored := tasks[0].Input
	is := task.PayloadHash(c.s.Open(place, stored))
	if cmd.OldHash == is {
		cmd.OldHash = task.PayloadHash(stored)
	}
	if task.PayloadHash(cmd.Input) == is {
		cmd.Input = stored
		return nil
	}
	cmd.Input, err = c.s.Seal(place, cmd.Input)
	return err
}

// expire converts a command for the store below; see replace.
func (c *sealed) expire(ctx context.Context, ns string, cmd *store.ExpireInput) error {
	tasks, err := c.Store.Tasks(ctx, ns, cmd.Task)
	if err != nil || len(tasks) == 0 || len(cmd.Input) == 0 {
		return err
	}
	place, stored := InputOf(cmd.Task, tasks[0].Type), tasks[0].Input
	if cmd.OldHash == task.PayloadHash(c.s.Open(place, stored)) {
		cmd.OldHash = task.PayloadHash(stored)
	}
	cmd.Input, err = c.s.Seal(place, cmd.Input)
	return err
}

// replaceAgain repeats a command that the store rejected because a rewrap sealed the input
// with another key after replace. If the input itself has changed, the store rejects the
// command again.
func (c *sealed) replaceAgain(ctx context.Context, ns string, cmd store.ReplaceInput, refused store.CommandResult) (store.CommandResult, error) {
	seen := cmd.OldHash
	if err := c.replace(ctx, ns, &cmd); err != nil || cmd.OldHash == seen {
		return refused, err
	}
	got, err := c.Store.Operate(ctx, ns, cmd)
	if err != nil {
		return refused, err
	}
	return got[0], nil
}

// sentBefore returns the result for a signal that was already sent with the same payload,
// sealed with another key. It returns nil if the payload differs.
func (c *sealed) sentBefore(ctx context.Context, ns string, cmd *store.SendSignal) (*store.CommandResult, error) {
	h, err := c.History(ctx, ns, cmd.Task)
	if err != nil {
		return nil, err
	}
	for i := range h.Signals {
		if g := &h.Signals[i]; g.Name == cmd.Name && g.Key == cmd.Key && bytes.Equal(g.Payload, cmd.Payload) {
			return &store.CommandResult{State: h.Task.State, Existing: true}, nil
		}
	}
	return nil, nil
}

// Finish implements store.Core.
func (c *sealed) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	fins = slices.Clone(fins)
	for i := range fins {
		f, err := &fins[i], error(nil)
		id := f.Lease.Task
		if f.Output, err = c.s.Seal(Place{Task: id, Kind: Output}, f.Output); err != nil {
			return nil, err
		}
		if f.Children, err = c.s.inputs(f.Children); err != nil {
			return nil, err
		}
		if f.Progress, err = c.s.progress(id, f.Progress); err != nil {
			return nil, err
		}
		if f.Events, err = c.s.events(id, f.Events); err != nil {
			return nil, err
		}
	}
	return c.Store.Finish(ctx, ns, fins...)
}

// Record implements store.Core.
func (c *sealed) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	answers := make([]store.RecordResult, len(recs))
	below, at := make([]store.Record, 0, len(recs)), make([]int, 0, len(recs))
	for i, rec := range recs {
		switch err := c.s.record(&rec); {
		case errors.Is(err, errNotJSON):
			answers[i].Err = err
		case err != nil:
			return nil, err
		default:
			below, at = append(below, rec), append(at, i)
		}
	}
	if len(below) == 0 {
		return answers, nil
	}
	got, err := c.Store.Record(ctx, ns, below...)
	if err != nil {
		return got, err
	}
	for n, i := range at {
		if errors.Is(got[n].Err, store.ErrStepConflict) {
			if err := c.recordedBefore(ctx, ns, &recs[i], &got[n]); err != nil {
				return nil, err
			}
		}
		c.s.openStep(recs[i].Lease.Task, &got[n].Step)
		answers[i] = got[n]
	}
	return answers, nil
}

// record seals the values of a record.
func (s *Sealer) record(rec *store.Record) (err error) {
	id := rec.Lease.Task
	if rec.Step != nil && holdsValue(rec.Step) {
		step := *rec.Step
		if step.Value, err = s.Seal(StepOf(id, &step), step.Value); err != nil {
			return err
		}
		rec.Step = &step
	}
	if rec.Checkpoint != nil {
		kept := *rec.Checkpoint
		if kept.Value, err = s.Seal(Place{Task: id, Kind: Checkpoint, Name: kept.Name}, kept.Value); err != nil {
			return err
		}
		rec.Checkpoint = &kept
	}
	rec.Artifacts = slices.Clone(rec.Artifacts)
	for i := range rec.Artifacts {
		a := &rec.Artifacts[i]
		if a.Link, err = s.Seal(LinkOf(id, a.Name), a.Link); err != nil {
			return err
		}
	}
	if rec.Tasks, err = s.inputs(rec.Tasks); err != nil {
		return err
	}
	if rec.Progress, err = s.progress(id, rec.Progress); err != nil {
		return err
	}
	rec.Events, err = s.events(id, rec.Events)
	return err
}

// holdsValue reports whether the value of a step is a handler's. The other values are IDs and
// numbers, which stores read and write themselves.
func holdsValue(s *task.Step) bool {
	switch s.Kind {
	case task.KindStep, task.KindCleanup, task.KindAsk:
		return true
	}
	return false
}

// recordedBefore checks whether the same attempt has already recorded a rejected step with the
// same value, sealed with another key, because of a rewrap between two tries. Then the record
// is a repetition.
func (c *sealed) recordedBefore(ctx context.Context, ns string, rec *store.Record, got *store.RecordResult) error {
	h, err := c.History(ctx, ns, rec.Lease.Task)
	if err != nil {
		return err
	}
	for i := range h.Steps {
		s := &h.Steps[i]
		if s.Name == rec.Step.Name && s.State == task.StepCompleted && s.AttemptNo == rec.Step.AttemptNo && s.Kind == rec.Step.Kind &&
			s.Error == nil && rec.Step.Error == nil && bytes.Equal(s.Value, rec.Step.Value) {
			got.Err, got.Step = nil, *s
		}
	}
	return nil
}

// progress seals the message of a report, which is the handler's text.
func (s *Sealer) progress(id task.ID, p *task.Progress) (*task.Progress, error) {
	if p == nil || p.Message == "" {
		return p, nil
	}
	text, err := json.Marshal(p.Message)
	if err != nil {
		return nil, err
	}
	value, err := s.Seal(Place{Task: id, Kind: Progress}, text)
	report := *p
	report.Message = string(value)
	return &report, err
}

// events seals the bodies of event rows.
func (s *Sealer) events(id task.ID, rows []store.EventRow) (_ []store.EventRow, err error) {
	if len(rows) == 0 {
		return rows, nil
	}
	rows = slices.Clone(rows)
	for i := range rows {
		if rows[i].Body, err = s.Seal(rowOf(id, &rows[i]), rows[i].Body); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func rowOf(id task.ID, r *store.EventRow) Place {
	if r.Log {
		return Place{Task: id, Kind: Log, Name: r.Type}
	}
	return Place{Task: id, Kind: Event, Name: r.Type}
}
