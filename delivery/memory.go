package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxPerLane is the default limit of hints that a transport holds for one lane. The hints above it are dropped: the
// store still has their tasks.
const MaxPerLane = 10_000

// Memory is a Transport between the parts of one process. Use NewMemory. The hints of a lane are popped in the order of
// their pushes, waiting Pops are served in the order of their calls, and nothing is lost except overflow.
type Memory struct {
	mu     sync.Mutex
	closed bool
	spaces map[string]*space // by namespace; none is empty
}

// space holds the hints of a namespace and its waiting Pops.
type space struct {
	hints   map[Lane][]task.ID  // never empty slices
	queues  map[string][]string // task type → queues with hints; the first one is popped next
	waiting []*waiter           // oldest first; none of their lanes has hints
	turn    int                 // rotates the lane that a Pop begins with
}

// waiter is a Pop that waits. Memory.mu guards ids.
type waiter struct {
	lanes []Lane
	limit int
	ids   []task.ID
	ready chan struct{} // closed when ids are set, or by Close
}

// NewMemory returns an empty transport.
func NewMemory() *Memory {
	return &Memory{spaces: make(map[string]*space)}
}

// Push implements Transport.
func (m *Memory) Push(ctx context.Context, namespace string, hints []Hint) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	s := m.space(namespace)
	for _, h := range hints {
		s.add(h)
	}
	s.serve()
	m.tidy(namespace, s)
	return nil
}

// Pop implements Transport.
func (m *Memory) Pop(ctx context.Context, namespace string, lanes []Lane, limit int, wait time.Duration) ([]task.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, ids, err := m.popOrWait(namespace, lanes, limit, wait)
	if w == nil {
		return ids, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return m.leave(namespace, w, err)
}

// popOrWait pops what is there. If nothing is and the caller has time, it returns a waiter.
func (m *Memory) popOrWait(namespace string, lanes []Lane, limit int, wait time.Duration) (*waiter, []task.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, ErrClosed
	}
	if limit < 1 {
		return nil, nil, nil
	}
	s := m.space(namespace)
	defer m.tidy(namespace, s)
	ids := s.pop(lanes, limit)
	if len(ids) > 0 || wait <= 0 {
		return nil, ids, nil
	}
	w := &waiter{lanes: slices.Clone(lanes), limit: limit, ready: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	return w, nil, nil
}

// leave ends the wait of w and returns the result of its Pop: hints that arrived as the wait ended are not lost.
func (m *Memory) leave(namespace string, w *waiter, err error) ([]task.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(w.ids) > 0 {
		return w.ids, nil
	}
	if m.closed {
		return nil, ErrClosed
	}
	s := m.space(namespace)
	s.waiting = slices.DeleteFunc(s.waiting, func(other *waiter) bool { return other == w })
	m.tidy(namespace, s)
	return nil, err
}

// Close implements Transport.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, s := range m.spaces {
		for _, w := range s.waiting {
			close(w.ready)
		}
	}
	m.spaces = nil
	return nil
}

// space returns the space of a namespace, new if it has none. Tidy removes it again.
func (m *Memory) space(namespace string) *space {
	s := m.spaces[namespace]
	if s == nil {
		s = &space{hints: make(map[Lane][]task.ID), queues: make(map[string][]string)}
		m.spaces[namespace] = s
	}
	return s
}

func (m *Memory) tidy(namespace string, s *space) {
	if len(s.hints) == 0 && len(s.waiting) == 0 {
		delete(m.spaces, namespace)
	}
}

func (s *space) add(h Hint) {
	ids := s.hints[h.Lane]
	switch len(ids) {
	case 0:
		s.queues[h.Lane.Type] = append(s.queues[h.Lane.Type], h.Lane.Queue)
	case MaxPerLane:
		return
	}
	s.hints[h.Lane] = append(ids, h.Task)
}

// serve hands hints to waiting Pops, the oldest first.
func (s *space) serve() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		if len(s.hints) > 0 {
			w.ids = s.pop(w.lanes, w.limit)
		}
		if len(w.ids) == 0 {
			return false
		}
		close(w.ready)
		return true
	})
}

// pop removes up to limit hints of the lanes. Each call begins with another lane, so that a full one starves no other.
func (s *space) pop(lanes []Lane, limit int) []task.ID {
	var ids []task.ID
	s.turn++
	for i := range lanes {
		lane := lanes[(s.turn+i)%len(lanes)]
		if lane.Queue != "" {
			ids = s.popLane(lane, limit, ids)
			continue
		}
		for len(ids) < limit && len(s.queues[lane.Type]) > 0 {
			ids = s.popLane(Lane{Queue: s.queues[lane.Type][0], Type: lane.Type}, limit, ids)
		}
	}
	return ids
}

// popLane appends hints of one lane to ids, which holds at most limit. The lane's queue becomes the last of its type.
func (s *space) popLane(lane Lane, limit int, ids []task.ID) []task.ID {
	hints := s.hints[lane]
	n := min(len(hints), limit-len(ids))
	if n == 0 {
		return ids
	}
	ids = append(ids, hints[:n]...)
	queues := s.queues[lane.Type]
	i := slices.Index(queues, lane.Queue)
	queues = slices.Delete(queues, i, i+1)
	if n == len(hints) {
		delete(s.hints, lane)
	} else {
		s.hints[lane] = hints[n:]
		queues = append(queues, lane.Queue)
	}
	if s.queues[lane.Type] = queues; len(queues) == 0 {
		delete(s.queues, lane.Type)
	}
	return ids
}
