package lane_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/lane"
)

var (
	key = lane.Key{Queue: "q", Type: "t", Priority: 5}
	all = func(lane.Key) bool { return true }
)

func known() *lane.Cache {
	c := new(lane.Cache)
	c.Replace("ns", map[lane.Key]int64{key: 100}, time.Now(), 0)
	return c
}

// A bound may be too early and never too late.
func TestBounds(t *testing.T) {
	t.Parallel()
	c := known()
	c.Add("ns", key, 50)
	if got := c.Lanes("ns", all); len(got) != 1 || got[0].Bound != 50 {
		t.Errorf("after an earlier row the lane is %+v", got)
	}
	c.Add("ns", key, 70)
	if got := c.Lanes("ns", all); got[0].Bound != 50 {
		t.Errorf("after a later row the lane is %+v", got)
	}
}

// What a claim saw does not count when a row was added meanwhile.
func TestObserve(t *testing.T) {
	t.Parallel()
	c := known()
	before := c.Lanes("ns", all)[0]
	c.Add("ns", key, 200)
	c.Observe("ns", []lane.Seen{before.Saw(lane.Empty)})
	if got := c.Lanes("ns", all); len(got) != 1 {
		t.Error("a lane that was seen empty before a row was added is gone")
	}
	c.Observe("ns", []lane.Seen{before.Saw(300)})
	if got := c.Lanes("ns", all); got[0].Bound > 200 {
		t.Errorf("the bound %d is later than a row that was added meanwhile", got[0].Bound)
	}
	after := c.Lanes("ns", all)[0]
	c.Observe("ns", []lane.Seen{after.Saw(150)})
	if got := c.Lanes("ns", all); got[0].Bound != 150 {
		t.Errorf("the bound is %d after a claim saw 150", got[0].Bound)
	}
	c.Observe("ns", []lane.Seen{after.Saw(lane.Empty)})
	if got := c.Lanes("ns", all); len(got) != 0 {
		t.Errorf("a lane that is empty is kept: %+v", got)
	}
}

// Namespaces do not see each other's lanes, and an unread one learns nothing.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	c := known()
	c.Add("other", key, 1)
	c.Observe("other", nil)
	if got := c.Lanes("other", all); len(got) != 0 {
		t.Errorf("a namespace that was never read has lanes: %+v", got)
	}
	if need, _ := c.NeedsReading("other", time.Now()); !need {
		t.Error("a namespace that was never read need not be read")
	}
}

// What was read in a transaction counts once that is committed: it may have
// deleted rows before.
func TestEnded(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		c := known()
		c.Ended(committed)
		if need, _ := c.NeedsReading("ns", time.Now()); need == committed {
			t.Errorf("committed %v: the lanes are to be read again: %v", committed, need)
		}
		c.Replace("ns", nil, time.Now(), 0)
		c.Ended(true)
		c.Ended(false) // of a transaction that read nothing
		if need, _ := c.NeedsReading("ns", time.Now()); need {
			t.Error("lanes that an earlier transaction read are forgotten")
		}
	}
}

func TestNeedsReading(t *testing.T) {
	t.Parallel()
	c := known()
	if need, _ := c.NeedsReading("ns", time.Now()); need {
		t.Error("lanes that no other process wrote to are read again")
	}
	c.Invalidate()
	if need, _ := c.NeedsReading("ns", time.Now()); !need {
		t.Error("lanes that another process wrote to are not read again")
	}
	many := make(map[lane.Key]int64)
	for i := range int64(lane.Few + 1) {
		many[lane.Key{Queue: "q", Type: "t", Priority: i}] = 1
	}
	at := time.Now()
	c.Replace("ns", many, at, time.Second)
	c.Invalidate()
	if need, wait := c.NeedsReading("ns", at); need || wait != 20*time.Second {
		t.Errorf("many lanes that took 1s to read: need %v, wait %v; want 20s", need, wait)
	}
	if need, _ := c.NeedsReading("ns", at.Add(20*time.Second)); !need {
		t.Error("many lanes are not read again after 20 times as long as the last reading took")
	}
}

func TestLanesAreSorted(t *testing.T) {
	t.Parallel()
	c := new(lane.Cache)
	late, early, urgent := lane.Key{Queue: "a", Priority: 5}, lane.Key{Queue: "b", Priority: 5}, lane.Key{Queue: "c", Priority: 1}
	c.Replace("ns", map[lane.Key]int64{late: 9, early: 3, urgent: 7}, time.Now(), 0)
	got := c.Lanes("ns", all)
	if len(got) != 3 || got[0].Key != urgent || got[1].Key != early || got[2].Key != late {
		t.Errorf("lanes %+v, want them by priority, then by bound", got)
	}
}
