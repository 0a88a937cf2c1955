package sqlstore

import (
	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

// classSource claims from the lanes of a class, which take turns (docs/limits.md).
type classSource struct {
	of    lane.Class
	seen  map[string]bool // groups of the lanes that it has begun to read
	queue []*turnCursor   // the lanes of this round, in turn
	again []*turnCursor   // those with more rows, for the next round
}

// turnCursor reads a lane in its turns.
type turnCursor struct {
	laneCursor
	share string
	most  int // tasks of its next turn
}

// weight returns how many tasks a share starts in one turn.
func (c *claim) weight(share string) int {
	if c.limits == nil {
		return 1
	}
	return max(1, c.limits.of[store.LimitLabel+share].Weight)
}

// step claims the tasks of one turn.
func (s *classSource) step(c *claim) (more bool, err error) {
	if c.slots != nil && c.slots[s.of.Queue] <= 0 {
		return false, nil
	}
	if len(s.queue) == 0 {
		if err := s.fill(c); err != nil || len(s.queue) == 0 {
			return false, err
		}
	}
	t := s.queue[0]
	s.queue = s.queue[1:]
	key, share := t.state.Key, t.share
	before, chunk := len(c.taken), max(1, (c.req.Limit-len(c.taken))/(len(s.queue)+1))
	for n, tried := 0, 0; n < t.most && tried < t.most+rules.TurnLooks && !c.full() && !c.stopped && (c.slots == nil || c.slots[s.of.Queue] > 0); tried++ {
		d, err := c.head(&t.laneCursor, max(chunk, t.most))
		if err != nil {
			return false, err
		}
		_, closed := c.closed[t.state.Key]
		if d == nil || closed {
			t = nil
			break
		}
		if err := c.tryNext(&t.laneCursor); err != nil {
			return false, err
		}
		n = len(c.taken) - before
	}
	if n := len(c.taken) - before; n > 0 {
		c.tx.db.Lanes().Took(c.tx.ns, &key, n, c.weight(share))
	}
	if t != nil {
		t.most = c.weight(t.share)
		s.again = append(s.again, t)
	}
	return true, nil
}

// fill begins the next round: with the lanes that had no turn in this claim, or else with those that
// have more rows.
func (s *classSource) fill(c *claim) error {
	want := max(1, c.req.Limit-len(c.taken))
	for len(s.queue) == 0 {
		turns := c.tx.db.Lanes().Turns(c.tx.ns, s.of, c.tx.mic, want, func(k *lane.Key) bool { return s.seen[k.Group] }, c.weight)
		if len(turns) == 0 {
			s.queue, s.again = s.again, nil
			return s.read(c)
		}
		for i := range turns {
			t := &turns[i]
			s.seen[t.Group] = true
			at, full, err := c.opens(&t.Key, nil)
			if err != nil {
				return err
			}
			if at > c.tx.mic {
				c.shut(&t.Key, at, full)
				continue
			}
			s.queue = append(s.queue, &turnCursor{*c.cursor(&t.State), t.Share, t.Most})
		}
	}
	return s.read(c)
}

// read reads the next rows of all lanes of the round.
func (s *classSource) read(c *claim) error {
	lanes, most := make([]*laneCursor, len(s.queue)), 1
	for i, t := range s.queue {
		lanes[i], most = &t.laneCursor, max(most, t.most)
	}
	if len(lanes) == 0 {
		return nil
	}
	return c.heads(lanes, min(max(most, (c.req.Limit-len(c.taken))/len(lanes)), maxChunk))
}

// lookAtClass is lookAt for the lanes of a class.
func (c *claim) lookAtClass(of lane.Class, n *nextLook) (now bool, err error) {
	seen := make(map[string]bool)
	for n.looks > 0 {
		turns := c.tx.db.Lanes().Turns(c.tx.ns, of, c.tx.mic, 16, func(k *lane.Key) bool { return seen[k.Group] }, c.weight)
		if len(turns) == 0 {
			break
		}
		for i := range turns {
			seen[turns[i].Group] = true
			n.looks--
			if now, err := c.lookAt(&turns[i].State, n); err != nil || now {
				return now, err
			}
		}
	}
	n.soonest = min(n.soonest, c.tx.db.Lanes().Later(c.tx.ns, of, c.tx.mic))
	return n.looks <= 0, nil
}
