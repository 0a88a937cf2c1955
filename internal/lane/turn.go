package lane

import (
	"container/heap"
	"container/list"

	"github.com/goweaver/weaver/store"
)

// Class identifies lanes that take turns: those with a group, of one queue, type and priority.
type Class struct {
	Queue, Type string
	Priority    int64
}

// Class returns the class of a lane with a group.
func (k *Key) Class() Class { return Class{k.Queue, k.Type, k.Priority} }

// class holds the lanes of a class. A lane is in later until it is due, then in due. The lanes of
// one fair share are next to each other in a share, and the shares take turns.
type class struct {
	later  laterHeap
	due    *list.List // of *share in the order of their turns
	shares map[string]*share
	used   int   // tasks that the first share has started in this turn
	now    int64 // of the last advance
}

// share holds the due lanes of one value of the label by which tasks take turns.
type share struct {
	name  string
	lanes *list.List // of *lane, in the order of their turns
	at    *list.Element
}

// place is the position of a lane in its class.
type place struct {
	index int           // in later, if elem is nil
	share *share        // of a due lane
	elem  *list.Element // in share.lanes
}

// laterHeap orders lanes by their due time.
type laterHeap []*lane

func (h laterHeap) Len() int           { return len(h) }
func (h laterHeap) Less(i, j int) bool { return h[i].due() < h[j].due() }
func (h laterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *laterHeap) Push(x any) {
	l := x.(*lane)
	l.index = len(*h)
	*h = append(*h, l)
}

func (h *laterHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return l
}

func newClass() *class { return &class{due: list.New(), shares: make(map[string]*share)} }

func (c *class) empty() bool { return len(c.later) == 0 && c.due.Len() == 0 }

func (c *class) wait(l *lane) { heap.Push(&c.later, l) }

func (c *class) remove(l *lane) {
	if l.elem == nil {
		heap.Remove(&c.later, l.index)
		return
	}
	c.leave(l)
}

// leave takes a lane out of its share.
func (c *class) leave(l *lane) {
	s := l.share
	s.lanes.Remove(l.elem)
	l.share, l.elem = nil, nil
	if s.lanes.Len() == 0 {
		if c.due.Front() == s.at {
			c.used = 0
		}
		c.due.Remove(s.at)
		delete(c.shares, s.name)
	}
}

// move applies a new due time.
func (c *class) move(l *lane) {
	switch {
	case l.elem == nil:
		heap.Fix(&c.later, l.index)
	case l.due() > c.now:
		c.leave(l)
		c.wait(l)
	}
}

// advance makes lanes due.
func (c *class) advance(now int64) {
	c.now = now
	for len(c.later) > 0 && c.later[0].due() <= now {
		l := heap.Pop(&c.later).(*lane)
		name := shareOf(l.key.Group)
		s := c.shares[name]
		if s == nil {
			s = &share{name: name, lanes: list.New()}
			s.at = c.due.PushBack(s)
			c.shares[name] = s
		}
		l.share, l.elem = s, s.lanes.PushBack(l)
	}
}

// Turn is a lane whose turn it is.
type Turn struct {
	State
	Share string // name of its share
	Most  int    // tasks that it may start before the next share's turn
}

// Turns returns the next lanes of a class that are due, at most n, in the order of their turns: one
// of each share, then a second one of those that have several. skip leaves out lanes that the caller
// has looked at. weight returns how many tasks a share starts in one turn.
func (c *Cache) Turns(ns string, of Class, now int64, n int, skip func(*Key) bool, weight func(share string) int) (turns []Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.class(ns, of)
	if cl == nil {
		return nil
	}
	cl.advance(now)
	unseen := func(at *list.Element) *list.Element {
		for at != nil && skip(&at.Value.(*lane).key) {
			at = at.Next()
		}
		return at
	}
	var next []*list.Element // the next lane of each share
	for e := cl.due.Front(); e != nil && len(next) < n; e = e.Next() {
		if at := unseen(e.Value.(*share).lanes.Front()); at != nil {
			next = append(next, at)
		}
	}
	for len(next) > 0 {
		left := next[:0]
		for _, at := range next {
			l := at.Value.(*lane)
			most := max(1, weight(l.share.name))
			if len(turns) == 0 && l.share.at == cl.due.Front() && cl.used < most {
				most -= cl.used
			}
			if turns = append(turns, Turn{l.state(), l.share.name, most}); len(turns) == n {
				return turns
			}
			if at = unseen(at.Next()); at != nil {
				left = append(left, at)
			}
		}
		next = left
	}
	return turns
}

// Took records that tasks of a lane were started in its turn. Its share's turn ends once it has
// started as many as its weight; the share then goes behind the others, and the lane behind the
// others of its share.
func (c *Cache) Took(ns string, key *Key, n, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.class(ns, key.Class())
	if cl == nil {
		return
	}
	l := c.spaces[ns].lanes[*key]
	if l == nil || l.elem == nil {
		return
	}
	s := l.share
	s.lanes.MoveToBack(l.elem)
	if cl.due.Front() != s.at {
		cl.due.MoveToFront(s.at)
		cl.used = 0
	}
	if cl.used += n; cl.used >= max(1, weight) {
		cl.due.MoveToBack(s.at)
		cl.used = 0
	}
}

// Later returns the time from which on the next lane of a class is due that is not due now, or
// [Empty].
func (c *Cache) Later(ns string, of Class, now int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.class(ns, of)
	if cl == nil {
		return Empty
	}
	cl.advance(now)
	if len(cl.later) == 0 {
		return Empty
	}
	return cl.later[0].due()
}

// Classes returns the classes that ok accepts, in no order.
func (c *Cache) Classes(ns string, ok func(Key) bool) (list []Class) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sp := c.spaces[ns]; sp != nil {
		for of := range sp.classes {
			if ok(Key{Queue: of.Queue, Type: of.Type, Priority: of.Priority}) {
				list = append(list, of)
			}
		}
	}
	return list
}

// NextTurn returns a number that grows by one with each call, by which the plain lanes and the
// classes of one priority take turns.
func (c *Cache) NextTurn(ns string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	if sp == nil {
		return 0
	}
	sp.turn++
	return sp.turn
}

// Close records that a limit lets no task of a lane start before an instant. full means that it may
// open before, when a task ends ([Cache.OpenFull]).
func (c *Cache) Close(ns string, key Key, until int64, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	if sp == nil {
		return
	}
	if l := sp.lanes[key]; l != nil {
		l.open = until
		sp.move(l)
		if full {
			sp.full = append(sp.full, l)
		}
	}
}

// OpenFull opens the lanes that wait for the end of a task.
func (c *Cache) OpenFull(ns string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	if sp == nil {
		return
	}
	for _, l := range sp.full {
		if l.open = 0; sp.lanes[l.key] == l {
			sp.move(l)
		}
	}
	sp.full = nil
}

// OpenAll opens all lanes, because a limit was changed.
func (c *Cache) OpenAll(ns string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	if sp == nil {
		return
	}
	for _, l := range sp.lanes {
		if l.open != 0 {
			l.open = 0
			sp.move(l)
		}
	}
}

func (c *Cache) class(ns string, of Class) *class {
	sp := c.spaces[ns]
	if sp == nil {
		return nil
	}
	return sp.classes[of]
}

// shareOf returns the name of the share of a group: the label and value by which its tasks take
// turns. Groups without one each have a share of their own.
func shareOf(group string) string {
	if fair, _ := store.SplitGroup(group); fair != "" {
		return fair
	}
	return group
}
