package weaver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// EventFilter selects what Subscribe follows: one task, or the tasks of one job.
type EventFilter struct {
	TaskID        TaskID
	JobID         JobID
	AfterSequence int64 // of a task: exclusive lower bound; 0: from the beginning
	NoWait        bool  // end after the events so far
}

// Subscribe replays the events of a task or of the tasks of a job, continues with new ones from any
// process, and ends when the task or job has ended. For a job each task's events are in order, and the
// last event is job.settled.
//
// The events of the task itself (task.enqueued, started, and the ends of attempts) are read from its
// rows and are always available. Events of steps, progress, chunks and logs are replayed completely,
// in the order of their Sequence, if the task's engine stores them (PersistEvents, PersistLogs).
// Otherwise completed steps are read from their rows, and the rest is sent only live, to subscribers
// of the engine itself: these events have Sequence 0. So do steps that completed just before their
// process was killed. An event without a number may repeat for a subscriber that resumes with
// AfterSequence.
//
// An input, output or step value in the bucket is sent as its stored reference when it is read from a
// row (ADR 0029); Get and OpenArtifact read the value.
//
// A slow subscriber delays no other. An error comes last: ErrNotFound, ErrInvalidOption, the cause of
// ctx, or a closed store. While the store is unreachable, Subscribe waits.
func (c *Client) Subscribe(ctx context.Context, f EventFilter) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		err := f.check()
		if err == nil {
			err = c.follow(ctx, f, func(ev event.Event) bool { return yield(ev, nil) })
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, fmt.Errorf("subscribe: %w", err))
		}
	}
}

// errStopped: the subscriber stopped the iteration.
var errStopped = errors.New("stopped")

func (f *EventFilter) check() error {
	switch {
	case f.TaskID.IsZero() == f.JobID.IsZero():
		return fmt.Errorf("%w: EventFilter wants a TaskID or a JobID", ErrInvalidOption)
	case f.AfterSequence < 0 || f.AfterSequence > 0 && f.TaskID.IsZero():
		return fmt.Errorf("%w: AfterSequence is %d: want a number of an event of the task TaskID", ErrInvalidOption, f.AfterSequence)
	}
	return nil
}

// live passes events of an engine to the subscribers of its client.
type live struct {
	listeners    *engine.Listeners
	logs, events bool // kinds that are not stored and must be passed on
}

// wants reports whether subscribers get an event only live.
func (l *live) wants(ev event.Event) bool {
	switch ev.(type) {
	case event.LogWritten:
		return l.logs
	case event.StepStarted, event.Progress, event.StreamChunk:
		return l.events
	}
	return false
}

// maxLive is the maximum number of unstored events that wait for a slow subscriber.
const maxLive = 10_000

// overheard holds the live events of a subscription's tasks.
type overheard struct {
	live *live
	f    EventFilter
	wake chan struct{}

	mu   sync.Mutex
	list map[task.ID][]event.Event
	size int
}

func (o *overheard) hear(ev event.Event) {
	h := ev.Head()
	if h.TaskID.IsZero() || h.TaskID != o.f.TaskID && h.JobID != o.f.JobID || o.f.TaskID.IsZero() && h.JobID.IsZero() {
		return
	}
	if o.live.wants(ev) {
		o.mu.Lock()
		if o.size < maxLive {
			o.list[h.TaskID] = append(o.list[h.TaskID], unnumbered(event.Plain(ev)))
			o.size++
		}
		o.mu.Unlock()
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take removes and returns the live events of a task.
func (o *overheard) take(id task.ID) []event.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list[id]
	delete(o.list, id)
	o.size -= len(list)
	return list
}

// unnumbered returns a live event without its number: a subscriber cannot resume from it.
func unnumbered(ev event.Event) event.Event {
	switch ev := ev.(type) {
	case event.LogWritten:
		ev.Sequence = 0
		return ev
	case event.StepStarted:
		ev.Sequence = 0
		return ev
	case event.Progress:
		ev.Sequence = 0
		return ev
	case event.StreamChunk:
		ev.Sequence = 0
		return ev
	}
	return ev
}

// follow yields events until the end of the task or job.
func (c *Client) follow(ctx context.Context, f EventFilter, yield func(event.Event) bool) error {
	id := cmp.Or(f.TaskID, f.JobID)
	changed, _ := c.waits.add(id)
	defer c.waits.remove(id, changed)
	heard := &overheard{live: c.live, f: f, wake: changed, list: map[task.ID][]event.Event{}}
	if c.live != nil {
		defer c.live.listeners.Add(heard.hear)()
	}
	given, to := 0, yield
	yield = func(ev event.Event) bool { given++; return to(ev) }
	look := c.lookAtJob(f.JobID, heard, yield)
	if !f.TaskID.IsZero() {
		s := newSubscription(c, f.TaskID, f.AfterSequence, heard, yield)
		look = s.look
	}
	warned, polled := false, false
	pace := pace{time.Now()}
	for {
		before := given
		more, ended, err := look(ctx)
		pace.looked(given > before, polled)
		away := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy)
		switch {
		case err != nil && !away || ended:
			return err
		case away && !warned && ctx.Err() == nil:
			c.log.Warn("the store cannot be read; the subscription goes on", "id", id, "error", err)
			warned = true
		}
		if more {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		if f.NoWait && !away {
			return nil
		}
		if polled, err = c.waits.pause(ctx, changed, false, pace.next()); err != nil {
			return err
		}
	}
}

// streamPoll is the polling interval of a subscriber that follows a stream without notices.
const streamPoll = 25 * time.Millisecond

// pace is the polling interval of a subscriber. It is short at the start, and after a poll found
// events, which shows that the store has no notices of them, as through a pooler; it grows with the
// time since.
type pace struct{ found time.Time }

// looked records a read and whether it found events.
func (p *pace) looked(found, polled bool) {
	if found && polled {
		p.found = time.Now()
	}
}

// next returns the time to wait for a notice.
func (p *pace) next() time.Duration {
	return min(max(streamPoll, time.Since(p.found)/4), waitPoll)
}

// lookAtJob returns a function that reads all unfinished tasks of a job.
func (c *Client) lookAtJob(id JobID, heard *overheard, yield func(event.Event) bool) func(context.Context) (more, ended bool, err error) {
	subs := map[task.ID]*subscription{}
	done := map[task.ID]bool{}
	return func(ctx context.Context) (more, ended bool, err error) {
		job, err := store.JobOf(ctx, c.store, c.ns, id) // before its tasks
		if err != nil {
			return false, false, err
		}
		var ids []task.ID
		for after := ""; ; {
			page, next, err := c.store.List(ctx, c.ns, store.Filter{Job: id, Limit: 1000, After: after})
			if err != nil {
				return false, false, err
			}
			for i := range page {
				ids = append(ids, page[i].ID)
			}
			if after = next; next == "" {
				break
			}
		}
		for _, id := range slices.Backward(ids) {
			if done[id] {
				continue
			}
			s := subs[id]
			if s == nil {
				s = newSubscription(c, id, 0, heard, yield)
				subs[id] = s
			}
			again, over, err := s.look(ctx)
			if err != nil && !errors.Is(err, ErrNotFound) { // deleted meanwhile
				return false, false, err
			}
			if more = more || again; over && job.State.Terminal() {
				done[id] = true
				delete(subs, id)
			}
		}
		if more || !job.State.Terminal() {
			return more, false, nil
		}
		if !yield(event.JobSettled{
			JobHeader: event.JobHeader{At: job.FinishedAt, Namespace: c.ns, JobID: job.ID, Name: job.Name},
			State:     job.State, Counters: job.Counters, Duration: job.FinishedAt.Sub(job.CreatedAt),
		}) {
			return false, false, errStopped
		}
		return false, true, nil
	}
}

// subscription is the position of a subscriber in the events of one task.
type subscription struct {
	c     *Client
	id    task.ID
	heard *overheard
	yield func(event.Event) bool

	after  int64
	resume bool           // nothing was read yet, and after comes from an earlier subscription
	known  map[tryOf]bool // steps whose events were yielded
	stored map[int64]bool // epochs with event rows
}

func newSubscription(c *Client, id task.ID, after int64, heard *overheard, yield func(event.Event) bool) *subscription {
	return &subscription{c: c, id: id, heard: heard, yield: yield, after: after, resume: after > 0, known: map[tryOf]bool{}, stored: map[int64]bool{}}
}

// look yields all new events. It reports whether more are already available, and whether the task has
// ended and no event can follow.
func (s *subscription) look(ctx context.Context) (more, ended bool, err error) {
	extra := s.heard.take(s.id) // the rows already have the events before them
	h, err := s.c.store.History(ctx, s.c.ns, s.id)
	redact.History(&h)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			err = s.c.noTask(s.id)
		}
		return false, false, err
	}
	r := &replay{ns: s.c.ns, History: &h}
	if err := s.rejoin(ctx, r); err != nil {
		return false, false, err
	}
	// After the history: if the history has an attempt's end, the rows have its events.
	rows, err := s.rows(ctx, s.after)
	if err != nil {
		return false, false, err
	}
	to, rows, more, err := r.horizon(rows)
	if err != nil {
		return false, false, err
	}
	if h.Task.State.Terminal() {
		extra = append(extra, s.heard.take(s.id)...)
	}
	list, err := s.next(r, rows, to)
	if err != nil {
		return false, false, err
	}
	for _, ev := range merged(list, extra) {
		if seq := ev.Head().Sequence; seq > 0 {
			s.after = seq
		}
		if !s.yield(ev) {
			return false, false, errStopped
		}
	}
	return more, h.Task.State.Terminal() && !more, nil
}

func (s *subscription) rows(ctx context.Context, after int64) ([]store.EventRow, error) {
	return s.c.store.Events(ctx, s.c.ns, s.id, after, 0)
}

// rejoin reads the events that the earlier subscription yielded of the attempt in which it ended.
func (s *subscription) rejoin(ctx context.Context, r *replay) error {
	if !s.resume {
		return nil
	}
	for at := event.Sequence(event.EpochOf(s.after), 0); ; {
		rows, err := s.rows(ctx, at)
		if err != nil {
			return err
		}
		for i := range rows {
			if at = rows[i].Seq; at > s.after {
				break
			}
			s.stored[event.EpochOf(at)] = s.stored[event.EpochOf(at)] || !rows[i].Log
			if _, err := r.stored(&rows[i], s.known); err != nil {
				return err
			}
		}
		if len(rows) < store.MaxEvents || at > s.after {
			s.resume = false
			return nil
		}
	}
}

// horizon returns the number up to which all events are known. It leaves rows of an attempt, or of the
// end of a step, that the history does not have yet, for the next read.
func (r *replay) horizon(rows []store.EventRow) (to int64, seen []store.EventRow, more bool, err error) {
	if more = len(rows) == store.MaxEvents; more {
		to = rows[len(rows)-1].Seq
	} else {
		to = math.MaxInt64
	}
	var last task.Attempt
	for i := range r.Attempts {
		if r.Attempts[i].Epoch > last.Epoch {
			last = r.Attempts[i]
		}
	}
	for i := range rows {
		epoch := event.EpochOf(rows[i].Seq)
		unknown := epoch > last.Epoch
		if epoch == last.Epoch && last.FinishedAt.IsZero() {
			ev, err := r.stored(&rows[i], map[tryOf]bool{})
			if err != nil {
				return 0, nil, false, err
			}
			done, ok := ev.(event.StepCompleted)
			unknown = ok && r.completed(done.Step, last.No) == nil
		}
		if unknown {
			return min(to, rows[i].Seq-1), rows[:i], true, nil
		}
	}
	return to, rows, more, nil
}

// next returns the events up to a number, in order, each step without an event row before the end of
// its attempt.
func (s *subscription) next(r *replay, rows []store.EventRow, to int64) ([]event.Event, error) {
	numbered := make([]event.Event, 0, len(rows))
	for i := range rows {
		ev, err := r.stored(&rows[i], s.known)
		if err != nil {
			return nil, err
		}
		if !rows[i].Log {
			s.stored[event.EpochOf(rows[i].Seq)] = true
		}
		numbered = append(numbered, ev)
	}
	for _, ev := range r.life() {
		if seq := ev.Head().Sequence; seq > s.after && seq <= to {
			numbered = append(numbered, ev)
		}
	}
	slices.SortStableFunc(numbered, func(a, b event.Event) int { return cmp.Compare(a.Head().Sequence, b.Head().Sequence) })

	var list []event.Event
	for _, ev := range numbered {
		if a := r.endsAttempt(ev); a != nil {
			list = append(list, r.steps(a, s.known)...)
		}
		list = append(list, ev)
	}
	if n := len(r.Attempts); n > 0 && to == math.MaxInt64 {
		if a := &r.Attempts[n-1]; a.FinishedAt.IsZero() && !s.stored[a.Epoch] {
			list = append(list, r.steps(a, s.known)...)
		}
	}
	return list, nil
}

// endsAttempt returns the attempt that ended with an event, or nil.
func (r *replay) endsAttempt(ev event.Event) *task.Attempt {
	seq := ev.Head().Sequence
	for i := range r.Attempts {
		if a := &r.Attempts[i]; seq == event.LastSequence(a.Epoch) || seq == event.SequenceWithoutLease(a.Epoch, 0) {
			return a
		}
	}
	return nil
}

// merged merges live events into the list by time; both lists keep their order.
func merged(list, extra []event.Event) []event.Event {
	if len(extra) == 0 {
		return list
	}
	at := func(ev event.Event) time.Time { return ev.Head().At }
	out := make([]event.Event, 0, len(list)+len(extra))
	for len(list) > 0 && len(extra) > 0 {
		if at(extra[0]).Before(at(list[0])) {
			out, extra = append(out, extra[0]), extra[1:]
		} else {
			out, list = append(out, list[0]), list[1:]
		}
	}
	return slices.Concat(out, list, extra)
}
