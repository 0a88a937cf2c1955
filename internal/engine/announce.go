package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// emitLost emits the event of a lease lost by its holder: no result of the attempt was written.
func (c *completer) emitLost(a *Attempt) {
	if c.listens() {
		c.emit(event.TaskLeaseLost{Header: a.header(), Duration: time.Since(a.begun)})
	}
}

// emitSettled emits the event of a job that ended or blocked because of the end of an attempt. It reads the job, only
// for listeners; if the read fails there is no event. A repeated write of an end does not report the state of the
// job, so the job is read.
func (c *completer) emitSettled(a *Attempt, res store.FinishResult, again bool) {
	id := a.task.JobID
	if !c.listensToAll() || id.IsZero() || !again && !res.Job.Terminal() && res.Job != task.JobBlocked {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.work), c.lease().Call())
	defer cancel()
	job, err := store.JobOf(ctx, c.Store, c.Namespace, id)
	if err != nil || !job.State.Terminal() && job.State != task.JobBlocked || !c.settled.first(&job) {
		return
	}
	end := job.FinishedAt
	if end.IsZero() {
		end = job.UpdatedAt
	}
	c.emit(event.JobSettled{
		JobHeader: event.JobHeader{At: time.Now().UTC(), Namespace: c.Namespace, JobID: id, Name: job.Name},
		State:     job.State, Counters: job.Counters, Duration: end.Sub(job.CreatedAt),
	})
}

// maxSettled is the number of settled jobs to remember.
const maxSettled = 1000

// settledJobs remembers the last jobs announced as settled, so that only one of several attempts that end together
// announces their job.
type settledJobs struct {
	mu    sync.Mutex
	known map[task.ID]settledJob
	order []task.ID // the oldest first
}

// settledJob is an announced state of a job.
type settledJob struct {
	state task.JobState
	at    time.Time // of its last change
}

// first reports whether the current state of a job is not announced yet.
func (s *settledJobs) first(j *task.Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := settledJob{j.State, j.UpdatedAt}
	old, seen := s.known[j.ID]
	if old == now {
		return false
	}
	if s.known == nil {
		s.known = make(map[task.ID]settledJob)
	}
	if !seen {
		if s.order = append(s.order, j.ID); len(s.order) > maxSettled {
			delete(s.known, s.order[0])
			s.order = s.order[1:]
		}
	}
	s.known[j.ID] = now
	return true
}

// maxReapedEvents is the maximum number of events for one reap.
const maxReapedEvents = 100

// emitReaped emits the events of reaped leases. It reads their tasks, only for listeners; a task that cannot be read
// has no event.
func (r *reaper) emitReaped(ctx context.Context, reaped []store.Reaped) {
	if !r.listens() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.lease().Call())
	defer cancel()
	for i := range reaped[:min(len(reaped), maxReapedEvents)] {
		h, err := r.Store.History(ctx, r.Namespace, reaped[i].Task)
		if err != nil {
			continue
		}
		for _, a := range slices.Backward(h.Attempts) {
			if a.Outcome != task.OutcomeLeaseLost {
				continue
			}
			t := &h.Task
			end := event.Ending{Outcome: a.Outcome, State: reaped[i].State, Crash: reaped[i].Crash, Duration: a.FinishedAt.Sub(a.StartedAt)}
			r.emit(end.Event(r.headerOf(t, &a, end)))
			if u := t.Undo; u != nil && !u.GaveUp && u.Error != nil && !u.Began.Before(a.FinishedAt) {
				end = event.Ending{Waiting: task.WaitUndo, Error: u.Error, EndsAs: u.EndsAs}
				r.emit(end.Event(r.headerOf(t, &a, end)))
			}
			break
		}
	}
}

// headerOf returns the header of an event about an attempt whose lease was taken away.
func (r *reaper) headerOf(t *task.Task, a *task.Attempt, end event.Ending) event.Header {
	return event.Header{
		At: time.Now().UTC(), Namespace: r.Namespace, TaskID: t.ID, TaskType: t.Type, JobID: t.JobID, Node: t.Node,
		AttemptNo: a.No, Sequence: end.Sequence(a.Epoch),
	}
}
