package seal

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Claim implements store.Core.
func (c *sealed) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	got, err := c.Store.Claim(ctx, ns, req)
	c.s.openClaimed(got.Tasks)
	return got, err
}

func (s *Sealer) openClaimed(claimed []store.Claimed) {
	for i := range claimed {
		t := &claimed[i]
		s.openTask(&t.Task)
		s.openSteps(t.Task.ID, t.Steps)
	}
}

// Tasks implements store.Observe.
func (c *sealed) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	got, err := c.Store.Tasks(ctx, ns, ids...)
	c.s.openTasks(got)
	return got, err
}

// List implements store.Observe.
func (c *sealed) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	got, next, err := c.Store.List(ctx, ns, f)
	c.s.openTasks(got)
	return got, next, err
}

// History implements store.Observe.
func (c *sealed) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	h, err := c.Store.History(ctx, ns, id)
	c.s.openTask(&h.Task)
	c.s.openSteps(id, h.Steps)
	c.s.openSignals(h.Signals)
	c.s.openCheckpoints(h.Checkpoints)
	c.s.openArtifacts(h.Artifacts)
	return h, err
}

// Schedules implements store.Observe.
func (c *sealed) Schedules(ctx context.Context, ns string, f store.ScheduleFilter) (store.SchedulePage, error) {
	page, err := c.Store.Schedules(ctx, ns, f)
	for i := range page.Schedules {
		s := &page.Schedules[i]
		s.Work = c.s.Open(ScheduleOf(s.Name), s.Work)
	}
	return page, err
}

// Events implements store.Observe.
func (c *sealed) Events(ctx context.Context, ns string, id task.ID, after int64, limit int) ([]store.EventRow, error) {
	rows, err := c.Store.Events(ctx, ns, id, after, limit)
	for i := range rows {
		rows[i].Body = c.s.Open(rowOf(id, &rows[i]), rows[i].Body)
	}
	return rows, err
}

// Feed implements store.Observe: it opens the values quoted in rows.
func (c *sealed) Feed(ctx context.Context, ns string, req store.FeedRequest) (store.FeedPage, error) {
	page, err := c.Store.Feed(ctx, ns, req)
	for i := range page.Rows {
		if row := &page.Rows[i]; len(row.Event.Body) > 0 {
			row.Event.Body = c.s.Open(rowOf(row.Task, &row.Event), row.Event.Body)
		}
	}
	return page, err
}

// Artifact implements store.Data.
func (c *sealed) Artifact(ctx context.Context, ns string, id task.ID) (task.Artifact, error) {
	a, err := c.Store.Artifact(ctx, ns, id)
	a.LinkValue = c.s.Open(LinkOf(a.TaskID, a.Name), a.LinkValue)
	return a, err
}

// Snapshot implements store.Data.
func (c *sealed) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	snap, err := c.Store.Snapshot(ctx, ns)
	if err != nil {
		return snap, err
	}
	c.s.openTasks(snap.Tasks)
	for i := range snap.Steps {
		c.s.openStep(snap.Steps[i].TaskID, &snap.Steps[i])
	}
	c.s.openSignals(snap.Signals)
	c.s.openCheckpoints(snap.Checkpoints)
	c.s.openArtifacts(snap.Artifacts)
	return snap, nil
}

func (s *Sealer) openSignals(signals []task.Signal) {
	for i := range signals {
		g := &signals[i]
		g.Payload = s.Open(SignalOf(g.TaskID, g.Name), g.Payload)
	}
}

func (s *Sealer) openCheckpoints(kept []task.Checkpoint) {
	for i := range kept {
		k := &kept[i]
		k.Value = s.Open(Place{Task: k.TaskID, Kind: Checkpoint, Name: k.Name}, k.Value)
	}
}

func (s *Sealer) openArtifacts(list []task.Artifact) {
	for i := range list {
		a := &list[i]
		a.LinkValue = s.Open(LinkOf(a.TaskID, a.Name), a.LinkValue)
	}
}

func (s *Sealer) openTasks(tasks []task.Task) {
	for i := range tasks {
		s.openTask(&tasks[i])
	}
}

func (s *Sealer) openTask(t *task.Task) {
	t.Input = s.Open(InputOf(t.ID, t.Type), t.Input)
	t.Output = s.Open(Place{Task: t.ID, Kind: Output}, t.Output)
	t.UnblockInput = s.Open(Place{Task: t.ID, Kind: Unblock}, t.UnblockInput)
	if t.Progress != nil && task.IsSealed(json.RawMessage(t.Progress.Message)) {
		p := *t.Progress
		p.Message = s.message(t.ID, p.Message)
		t.Progress = &p
	}
}

// message returns the opened message of a report.
func (s *Sealer) message(id task.ID, sealed string) (text string) {
	value := s.Open(Place{Task: id, Kind: Progress}, json.RawMessage(sealed))
	if err := Failure(value); err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	if err := json.Unmarshal(value, &text); err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return text
}

func (s *Sealer) openSteps(id task.ID, steps []task.Step) {
	for i := range steps {
		s.openStep(id, &steps[i])
	}
}

func (s *Sealer) openStep(id task.ID, step *task.Step) {
	step.Value = s.Open(StepOf(id, step), step.Value)
}
