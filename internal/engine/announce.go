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

// emitLost emits the event of a lease that was lost, by its holder: nothing of the
// attempt was written.
func (c *completer) emitLost(a *Attempt) {
	if c.Sink != nil {
		c.emit(event.TaskLeaseLost{Header: a.header(), Duration: time.Since(a.begun)})
	}
}

// emitSettled emits the event of a job that the end of an attempt led to its end, or
// to a block. It reads the job, for listeners only: if that fails there is no event.
func (c *completer) emitSettled(a *Attempt, res store.FinishResult) {
	id := a.task.JobID
	if c.Sink == nil || id.IsZero() || res.State == task.Ready || res.State == task.Pending && !waitsForOthers(res.Waiting) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.work), c.TTL)
	defer cancel()
	job, err := c.Store.Job(ctx, c.Namespace, id)
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

// waitsForOthers reports whether a pending task moves only if another one does, so
// that its job may be blocked.
func waitsForOthers(w task.Waiting) bool {
	return w == task.WaitDeps || w == task.WaitChildren || w == task.WaitSignal
}

// jobLoad counts the attempts of each job that go on in this process.
type jobLoad struct {
	mu    sync.Mutex
	count map[task.ID]int
}

// enter counts an attempt.
func (l *jobLoad) enter(a *Attempt) {
	if a.task.JobID.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == nil {
		l.count = make(map[task.ID]int)
	}
	l.count[a.task.JobID]++
	a.counted = true
}

// leave counts an attempt no longer, once, and reports whether others of its job are.
func (l *jobLoad) leave(a *Attempt) (others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := a.task.JobID
	if a.counted {
		a.counted = false
		if l.count[id]--; l.count[id] == 0 {
			delete(l.count, id)
		}
	}
	return l.count[id] > 0
}

// maxSettled is how many jobs are remembered as settled.
const maxSettled = 1000

// settledJobs remembers the last jobs that were announced as settled, so that of
// attempts that end together only one announces their job.
type settledJobs struct {
	mu    sync.Mutex
	known map[task.ID]settledJob
	order []task.ID // the oldest first
}

// settledJob is how a job was announced.
type settledJob struct {
	state task.JobState
	at    time.Time // of its last change
}

// first reports whether a job was not announced as it is now.
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

// maxReapedEvents is how many of the leases that one reap took have an event.
const maxReapedEvents = 100

// emitReaped emits the events of leases that were taken away. It reads what they
// name, for listeners only: what cannot be read has no event.
func (r *reaper) emitReaped(ctx context.Context, reaped []store.Reaped) {
	if r.Sink == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.TTL)
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
			r.emit(event.TaskLeaseLost{
				Header: event.Header{
					At: time.Now().UTC(), Namespace: r.Namespace, TaskID: t.ID, TaskType: t.Type, JobID: t.JobID, Node: t.Node,
					AttemptNo: a.No, Sequence: event.SequenceWithoutLease(a.Epoch, 0),
				},
				State: reaped[i].State, Crash: reaped[i].Crash, Duration: a.FinishedAt.Sub(a.StartedAt),
			})
			break
		}
	}
}
