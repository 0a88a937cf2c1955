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
	c.Replace("ns", map[lane.Key]int64{key: 100}, lane.Reading{At: time.Now()})
	return c
}

// A bound may be too early but never too late.
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

// A claim's observation does not count if a row was added meanwhile.
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

// Namespaces do not see each other's lanes, and an unread namespace caches nothing.
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

// Lanes read in a transaction count once it is committed, because it may have deleted rows
// before.
func TestEnded(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		c := known()
		c.Ended(committed)
		if need, _ := c.NeedsReading("ns", time.Now()); need == committed {
			t.Errorf("committed %v: the lanes are to be read again: %v", committed, need)
		}
		c.Replace("ns", nil, lane.Reading{Since: c.Version(), At: time.Now()})
		c.Ended(true)
		c.Ended(false) // a transaction without a reading
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
	c.Replace("ns", many, lane.Reading{At: at, Took: time.Second})
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
	c.Replace("ns", map[lane.Key]int64{late: 9, early: 3, urgent: 7}, lane.Reading{At: time.Now()})
	got := c.Lanes("ns", all)
	if len(got) != 3 || got[0].Key != urgent || got[1].Key != early || got[2].Key != late {
		t.Errorf("lanes %+v, want them by priority, then by bound", got)
	}
}

// With unnoticed writes of other processes, the lanes are cached only while reading takes
// long, for a bounded time.
func TestUnnoticed(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for took, want := range map[time.Duration]time.Duration{
		lane.Long - 1:          0,
		lane.Long:              20 * lane.Long,
		10 * time.Second:       lane.Latest,
		20 * time.Millisecond:  400 * time.Millisecond,
		100 * time.Microsecond: 0,
	} {
		c := lane.Cache{Unnoticed: true}
		if need, _ := c.NeedsReading("ns", at); !need {
			t.Error("lanes that were never read need no reading")
		}
		c.Replace("ns", map[lane.Key]int64{key: 100}, lane.Reading{Now: 150, At: at, Took: took})
		if need, wait := c.NeedsReading("ns", at); need != (want == 0) || wait != want {
			t.Errorf("after a reading of %s: needed %v, wait %s; want %s", took, need, wait, want)
		}
		if need, wait := c.NeedsReading("ns", at.Add(want-1)); want > 0 && (need || wait != 1) {
			t.Errorf("just before the end of %s: needed %v, wait %s", want, need, wait)
		}
		if need, _ := c.NeedsReading("ns", at.Add(want)); !need {
			t.Errorf("after %s it is not needed", want)
		}
	}
}

// AddDue sets a bound no earlier than the store's clock at the last reading.
func TestAddDue(t *testing.T) {
	t.Parallel()
	c := lane.Cache{Unnoticed: true}
	c.AddDue("ns", key) // never read
	future, other := lane.Key{Queue: "q", Type: "t", Priority: 6}, lane.Key{Queue: "q", Type: "t", Priority: 7}
	c.Replace("ns", map[lane.Key]int64{key: 100, future: 900}, lane.Reading{Now: 150, At: time.Now()})
	for _, k := range []lane.Key{key, future, other} {
		c.AddDue("ns", k)
	}
	got := c.Lanes("ns", all)
	if len(got) != 3 || got[0].Bound != 100 || got[1].Bound != 150 || got[2].Bound != 150 {
		t.Errorf("the lanes are %+v", got)
	}
}

// Two readings overlap. The results of the later reading, and lanes added meanwhile, survive
// when the earlier reading ends last.
func TestReadingsOverlap(t *testing.T) {
	t.Parallel()
	c := lane.Cache{Unnoticed: true}
	found, added, gone := lane.Key{Queue: "q", Type: "t", Priority: 6}, lane.Key{Queue: "q", Type: "t", Priority: 7}, lane.Key{Queue: "q", Type: "t", Priority: 8}
	c.Replace("ns", map[lane.Key]int64{key: 100, gone: 100}, lane.Reading{At: time.Now()})
	since := c.Version()
	c.Replace("ns", map[lane.Key]int64{key: 90, found: 110}, lane.Reading{Since: c.Version(), At: time.Now()})
	c.Add("ns", added, 120)
	c.Replace("ns", map[lane.Key]int64{key: 100}, lane.Reading{Since: since, At: time.Now()})
	got := c.Lanes("ns", all)
	if len(got) != 3 || got[0].Bound != 90 || got[1].Key != found || got[2].Key != added {
		t.Errorf("the lanes are %+v", got)
	}
}
