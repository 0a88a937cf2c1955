package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// feed holds the retained events of a namespace.
type feed struct {
	keep   time.Duration // 0 if the feed is off
	pruned int64
	last   int64
	rows   []store.FeedRow // by position, without quoted values
}

func (f *feed) state() store.FeedState {
	return store.FeedState{On: f.keep > 0, Kept: f.pruned, Newest: f.last, Last: f.last}
}

// tell appends a row if the feed is on. Rows of a task follow its move.
func (o *op) tell(row store.FeedRow) {
	if o.feed.keep == 0 {
		return
	}
	o.feed.last++
	row.Pos, row.At = o.feed.last, cmp.Or(row.At, o.now)
	if row.Name == "" {
		row.Name = store.FeedName(row.Kind, row.State, row.Waiting, row.Outcome)
	}
	o.feed.rows = append(o.feed.rows, row)
}

func (r *row) told(kind store.FeedKind) store.FeedRow {
	return store.FeedRow{
		Kind: kind, Task: r.ID, Job: r.JobID, Type: r.Type, Queue: r.Queue,
		AttemptNo: r.AttemptNo, Epoch: r.Epoch, State: string(r.State), Waiting: r.Waiting,
	}
}

// tellMove appends a task's change of state.
func (o *op) tellMove(r *row, from task.State) {
	over := r.State.Terminal() || r.State == task.Blocked
	switch {
	case r.State == task.Running:
		o.tell(r.told(store.FeedStarted))
	case from == task.Running:
		o.tellEnd(r, over)
	case over && from != r.State:
		o.tell(r.told(store.FeedOver))
	case !over && (from.Terminal() || from == task.Blocked):
		o.tell(r.told(store.FeedReopened))
	}
}

// tellEnd appends the end of the task's attempt, and the task's new state if it changes.
func (o *op) tellEnd(r *row, over bool) {
	list := o.attempts[r.ID]
	if len(list) == 0 {
		return
	}
	a := &list[len(list)-1]
	ended := r.told(store.FeedEnded)
	ended.Epoch, ended.Outcome = a.Epoch, a.Outcome
	o.tell(ended)
	if over && (a.Outcome == task.OutcomeLeaseLost || a.Outcome == task.OutcomeReleased) {
		o.tell(r.told(store.FeedOver))
	}
}

// tellEvent appends an event row.
func (o *op) tellEvent(r *row, ev *store.EventRow) {
	kind := store.FeedEvent
	if ev.Log {
		kind = store.FeedLog
	}
	told := r.told(kind)
	told.Name, told.At = ev.Type, ev.At
	told.Event = store.EventRow{Seq: ev.Seq, Log: ev.Log, Type: ev.Type, At: ev.At}
	o.tell(told)
}

// tellJobs appends the ends of jobs.
func (o *op) tellJobs() {
	var ended []*task.Job
	for j, was := range o.jobWas {
		if j.State != was && j.State.Terminal() {
			ended = append(ended, j)
		}
	}
	slices.SortFunc(ended, func(a, b *task.Job) int { return a.ID.Compare(b.ID) })
	for _, j := range ended {
		o.tell(store.FeedRow{Kind: store.FeedSettled, Job: j.ID, State: string(j.State)})
	}
}

// keepFor applies the command KeepFeed.
func (f *feed) keepFor(keep time.Duration) {
	if keep > 0 && f.keep == 0 && f.last > 0 { // the gap's rows are missing, and readers learn of it
		f.last++
		f.pruned = f.last
	}
	f.keep = keep
}

// Feed implements store.Observe.
func (s *Store) Feed(ctx context.Context, ns string, req store.FeedRequest) (page store.FeedPage, err error) {
	err = s.do(ctx, ns, func(o *op) {
		if page = (store.FeedPage{FeedState: o.feed.state()}); !req.StateOnly {
			page = o.feedPage(&req)
		}
	})
	return page, err
}

func (o *op) feedPage(req *store.FeedRequest) store.FeedPage {
	page := store.FeedPage{FeedState: o.feed.state(), Next: max(req.After, o.feed.pruned)}
	limit, bytes := rules.FeedLimit(req.Limit), 0
	from, _ := slices.BinarySearchFunc(o.feed.rows, page.Next+1, byPos)
	for i, row := range o.feed.rows[from:] {
		if i == store.MaxFeedLooks {
			page.More = true
			return page
		}
		if req.Passes(&row) {
			o.quote(&row)
			bytes += len(row.Event.Body)
			if n := len(page.Rows); n == limit || n > 0 && bytes > store.MaxFeedBytes {
				page.More = true
				return page
			}
			page.Rows = append(page.Rows, row)
		}
		page.Next = row.Pos
	}
	page.Next = max(page.Next, o.feed.last)
	return page
}

func byPos(row store.FeedRow, pos int64) int { return cmp.Compare(row.Pos, pos) }

// quote fills in the quoted values of a row that still exist.
func (o *op) quote(row *store.FeedRow) {
	if row.Kind == store.FeedSettled {
		if j := o.jobs[row.Job]; j != nil {
			row.JobName, row.StartedAt = j.Name, j.CreatedAt
			if string(j.State) == row.State && j.UpdatedAt.Equal(row.At) {
				row.Counters = j.Counters
			}
		}
		return
	}
	r := o.tasks[row.Task]
	if row.Gone = r == nil; row.Gone {
		return
	}
	row.Node, row.AllowFailure, row.Redact = r.Node, r.AllowFailure, slices.Clone(r.Redact)
	switch row.Kind {
	case store.FeedEvent, store.FeedLog:
		kept := o.events[r.ID]
		if i, there := slices.BinarySearchFunc(kept, row.Event.Seq, bySeq); there {
			row.Event.Body = copyRaw(kept[i].Body)
		}
	case store.FeedOver:
		row.Error = r.verdict(row)
	case store.FeedEnded:
		for _, a := range o.attempts[r.ID] {
			if a.No == row.AttemptNo {
				row.StartedAt, row.Error = a.StartedAt, copyPtr(a.Error)
			}
		}
		if row.Error == nil && (r.State == task.Failed || r.State == task.Cancelled) {
			row.Error = r.verdict(row)
		}
		for _, d := range o.decisions[r.ID] {
			if d.AttemptNo == row.AttemptNo {
				row.NextReadyAt = d.NextReadyAt
			}
		}
	}
}

// verdict returns the error of a task if the task is still in the state of the row.
func (r *row) verdict(told *store.FeedRow) *task.Error {
	if string(r.State) != told.State || !r.UpdatedAt.Equal(told.At) {
		return nil
	}
	return copyPtr(r.Error)
}

// prune is the Collect of the feed.
func (f *feed) prune(now time.Time) (more bool) {
	n := 0
	for n < len(f.rows) && n < rules.MaxMoves && (f.keep == 0 || f.rows[n].Pos <= f.pruned || f.rows[n].At.Before(now.Add(-f.keep))) {
		n++
	}
	if n > 0 {
		f.pruned = max(f.pruned, f.rows[n-1].Pos)
		f.rows = slices.Delete(f.rows, 0, n)
	}
	return n == rules.MaxMoves
}
