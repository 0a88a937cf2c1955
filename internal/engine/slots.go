package engine

import (
	"sync"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// slots holds the attempts whose lease this process holds. Each has a slot while its handler runs. After that the
// next task may be claimed into the slot, concurrently with the call that makes the outcome durable. At most 2 ·
// limit leases are therefore held. It is safe for concurrent use.
type slots struct {
	limit  int
	queues map[string]int // limit per queue; nil: every queue, without limits

	mu          sync.Mutex
	running     map[*Attempt]slot
	latest      map[task.ID]*Attempt // the last running attempt of each task
	quarantined int                  // of running
	ending      int                  // of running: attempts whose handler has returned
	inQueue     map[string]int       // occupied slots, by queue
}

// slot is the state of an attempt whose lease is held.
type slot struct {
	quarantined bool
	ended       bool          // its handler has returned, and its slot is free
	released    chan struct{} // closed at the release; nil: no other attempt waits for it
}

func newSlots(limit int, queues map[string]int) *slots {
	return &slots{
		limit: limit, queues: queues, running: make(map[*Attempt]slot), latest: make(map[task.ID]*Attempt),
		inQueue: make(map[string]int),
	}
}

// take gives an attempt a slot. ended is closed when the end of the task's previous attempt, whose handler has
// returned, is announced; nil: there is no such attempt.
func (s *slots) take(a *Attempt, quarantined bool) (ended <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.latest[a.task.ID]; before != nil && before.isOver() {
		held := s.running[before]
		if held.released == nil {
			held.released = make(chan struct{})
			s.running[before] = held
		}
		ended = held.released
	}
	s.running[a], s.latest[a.task.ID] = slot{quarantined: quarantined}, a
	s.inQueue[a.task.Queue]++
	if quarantined {
		s.quarantined++
	}
	return ended
}

// end frees the slot of an attempt whose handler has returned, unless the outcomes being written already equal the
// number of slots. It reports whether it freed the slot.
func (s *slots) end(a *Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.running[a]
	if !ok || s.ending >= s.limit {
		return false
	}
	held.ended = true
	s.running[a] = held
	s.ending++
	s.leave(a.task.Queue)
	return true
}

// leave frees a slot of a queue.
func (s *slots) leave(queue string) {
	if s.inQueue[queue]--; s.inQueue[queue] == 0 {
		delete(s.inQueue, queue)
	}
}

// release removes an attempt and frees its slot. It returns false if the attempt was removed before.
func (s *slots) release(a *Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.running[a]
	if !ok {
		return false
	}
	delete(s.running, a)
	if s.latest[a.task.ID] == a {
		delete(s.latest, a.task.ID)
	}
	if held.released != nil {
		close(held.released)
	}
	if held.ended {
		s.ending--
	} else {
		s.leave(a.task.Queue)
	}
	if held.quarantined {
		s.quarantined--
	}
	return true
}

// fill sets the free slots in a claim and reports whether no lease is held.
func (s *slots) fill(req *store.ClaimRequest) (idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Slots, req.Running = s.limit, len(s.running)
	req.Limit = min(s.limit-len(s.running)+s.ending, claimLimit)
	if req.Quarantined = s.quarantined; s.quarantined > 0 {
		s.fillQuarantine(req)
	}
	if s.queues != nil {
		req.Queues = make(map[string]int, len(s.queues))
		free := 0
		for q, limit := range s.queues {
			if n := limit - s.inQueue[q]; n > 0 {
				req.Queues[q] = n
				free += n
			}
		}
		req.Limit = min(req.Limit, free)
	}
	if req.Alone {
		req.Limit = 0
	}
	return len(s.running) == 0
}

// fillQuarantine sets the limits for quarantined tasks.
func (s *slots) fillQuarantine(req *store.ClaimRequest) {
	for a, held := range s.running {
		if !held.quarantined {
			continue
		}
		req.Alone = req.Alone || a.alone
		if req.QuarantineLimit == 0 || a.quarantineLimit < req.QuarantineLimit {
			req.QuarantineLimit = a.quarantineLimit
		}
	}
}

// all returns the attempts whose lease is held.
func (s *slots) all() []*Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Attempt, 0, len(s.running))
	for a := range s.running {
		all = append(all, a)
	}
	return all
}

// runsAny reports whether the lease of an attempt of one of the tasks is held.
func (s *slots) runsAny(ids []task.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		for a := range s.running {
			if a.task.ID == id {
				return true
			}
		}
	}
	return false
}

// ofType returns the number of running attempts of a task type.
func (s *slots) ofType(taskType string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for a, held := range s.running {
		if a.task.Type == taskType && !held.ended {
			n++
		}
	}
	return n
}

// taken returns the number of held leases.
func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}
