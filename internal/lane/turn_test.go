package lane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func groupOf(tenant string) string {
	return store.LaneGroup(task.Options{FairBy: "tenant"}, map[string]string{"tenant": tenant})
}

func fairKey(tenant string) lane.Key {
	return lane.Key{Queue: "q", Type: "t", Group: groupOf(tenant), Priority: 5}
}

func fairCache(tenants ...string) *lane.Cache {
	c := new(lane.Cache)
	c.Replace("ns", nil, lane.Reading{At: time.Now()})
	for _, t := range tenants {
		c.Add("ns", fairKey(t), 100)
	}
	return c
}

func noneSeen(*lane.Key) bool { return false }

// next takes the next n turns, each of a claim of its own.
func next(c *lane.Cache, n int, weight func(string) int) (got string) {
	for range n {
		turns := c.Turns("ns", lane.Class{Queue: "q", Type: "t", Priority: 5}, 100, 1, noneSeen, weight)
		if len(turns) == 0 {
			return got + "-"
		}
		fair, _ := store.SplitGroup(turns[0].Group)
		got += fair[len("tenant="):]
		c.Took("ns", &turns[0].Key, 1, weight(turns[0].Share))
	}
	return got
}

func one(string) int { return 1 }

func TestTurns(t *testing.T) {
	t.Parallel()
	c := fairCache("a", "b", "c")
	first := next(c, 3, one)
	if got := next(c, 6, one); got != first+first {
		t.Errorf("turns %s after %s", got, first)
	}
	c.Add("ns", fairKey("d"), 100) // comes last in the turn that has begun
	if got := next(c, 4, one); got != first+"d" {
		t.Errorf("turns with a new lane %s, want %sd", got, first)
	}
	of := lane.Class{Queue: "q", Type: "t", Priority: 5}
	if got := c.Turns("ns", of, 100, 10, noneSeen, one); len(got) != 4 {
		t.Errorf("%d turns at once, want 4", len(got))
	}
	if got := c.Lanes("ns", all); len(got) != 0 {
		t.Errorf("lanes that take turns are among the plain ones: %v", got)
	}
}

func TestTurns_Weights(t *testing.T) {
	t.Parallel()
	c := fairCache("a", "b")
	weight := func(share string) int {
		if share == "tenant=b" {
			return 3
		}
		return 1
	}
	count := map[rune]int{}
	for _, r := range next(c, 40, weight) {
		count[r]++
	}
	if count['a'] != 10 || count['b'] != 30 {
		t.Errorf("starts %v, want 10 and 30", count)
	}
}

// A lane is passed over until its first row is due, and while it is closed.
func TestTurns_Later(t *testing.T) {
	t.Parallel()
	c := fairCache("a")
	of := lane.Class{Queue: "q", Type: "t", Priority: 5}
	c.Add("ns", fairKey("b"), 500)
	if got := next(c, 2, one); got != "aa" {
		t.Errorf("turns %s, want aa", got)
	}
	if got := c.Later("ns", of, 100); got != 500 {
		t.Errorf("the next lane is due at %d, want 500", got)
	}
	c.Close("ns", fairKey("a"), 300, true)
	if got := next(c, 1, one); got != "-" {
		t.Errorf("a closed lane has the turn: %s", got)
	}
	if got := c.Later("ns", of, 100); got != 300 {
		t.Errorf("a lane opens at %d, want 300", got)
	}
	c.OpenFull("ns")
	if got := next(c, 1, one); got != "a" {
		t.Errorf("after a task has ended the turn is of %s", got)
	}
	c.Close("ns", fairKey("a"), 300, false)
	c.OpenFull("ns")
	if got := next(c, 1, one); got != "-" {
		t.Errorf("a lane that is closed by its rate has the turn: %s", got)
	}
	c.OpenAll("ns")
	if got := next(c, 1, one); got != "a" {
		t.Errorf("after a limit was changed the turn is of %s", got)
	}
}

// A class of many lanes keeps its order through readings, and forgets lanes that are gone.
func TestTurns_Readings(t *testing.T) {
	t.Parallel()
	c := fairCache()
	read := map[lane.Key]int64{}
	for i := range 1000 {
		read[fairKey(fmt.Sprintf("%03d", i))] = 100
	}
	c.Replace("ns", read, lane.Reading{Since: c.Version(), At: time.Now()})
	first := next(c, 500, one)
	c.Replace("ns", read, lane.Reading{Since: c.Version(), At: time.Now()})
	second := next(c, 500, one)
	if got := next(c, 1000, one); got != first+second {
		t.Error("a reading changed the turns")
	}
	c.Replace("ns", map[lane.Key]int64{fairKey("007"): 100}, lane.Reading{Since: c.Version(), At: time.Now()})
	if got := next(c, 2, one); got != "007007" {
		t.Errorf("turns %s of lanes that are gone", got)
	}
	seen := c.Turns("ns", lane.Class{Queue: "q", Type: "t", Priority: 5}, 100, 1, noneSeen, one)
	c.Observe("ns", []lane.Seen{seen[0].Saw(lane.Empty)})
	if got := c.Classes("ns", all); len(got) != 0 {
		t.Errorf("a class without lanes is kept: %v", got)
	}
}
