package engine

import (
	"sync"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// slots holds the attempts that run, each in a slot of its own, and counts
// them by queue. It is safe for concurrent use.
type slots struct {
	limit  int
	queues map[string]int // the limit of each queue; nil: every queue, without limits

	mu          sync.Mutex
	running     map[leaseKey]*Attempt
	inQueue     map[string]int        // running, by queue
	quarantined map[*Attempt]struct{} // running
}

type leaseKey struct {
	task  task.ID
	epoch int64
}

func newSlots(limit int, queues map[string]int) *slots {
	return &slots{
		limit:       limit,
		queues:      queues,
		running:     make(map[leaseKey]*Attempt),
		inQueue:     make(map[string]int),
		quarantined: make(map[*Attempt]struct{}),
	}
}

// take gives an attempt a slot.
func (s *slots) take(a *Attempt, quarantined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[a.key()] = a
	s.inQueue[a.task.Queue]++
	if quarantined {
		s.quarantined[a] = struct{}{}
	}
}

// release frees the slot of an attempt. It reports false when that was done
// before.
func (s *slots) release(a *Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[a.key()] != a {
		return false
	}
	delete(s.running, a.key())
	if s.inQueue[a.task.Queue]--; s.inQueue[a.task.Queue] == 0 {
		delete(s.inQueue, a.task.Queue)
	}
	delete(s.quarantined, a)
	return true
}

// fill sets in a claim what the free slots can take, and reports whether
// nothing runs.
func (s *slots) fill(req *store.ClaimRequest) (idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Slots, req.Running = s.limit, len(s.running)
	req.Limit = min(s.limit-len(s.running), claimLimit)
	for a := range s.quarantined {
		req.Quarantined++
		req.Alone = req.Alone || a.alone
		if req.QuarantineLimit == 0 || a.quarantineLimit < req.QuarantineLimit {
			req.QuarantineLimit = a.quarantineLimit
		}
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

// all returns the attempts that hold a slot.
func (s *slots) all() []*Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Attempt, 0, len(s.running))
	for _, a := range s.running {
		all = append(all, a)
	}
	return all
}

// runsAny reports whether an attempt of one of the tasks holds a slot.
func (s *slots) runsAny(ids []task.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		for key := range s.running {
			if key.task == id {
				return true
			}
		}
	}
	return false
}

// taken returns how many attempts hold a slot.
func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}
