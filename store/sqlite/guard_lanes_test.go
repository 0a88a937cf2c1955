package sqlite

import (
	"testing"
	"time"
)

// What is known of lanes may be too much or too early, never too little or too
// late: a lane that has rows is known, and none of them is due before its bound.
func TestLanesErrOnOneSide(t *testing.T) {
	t.Parallel()
	k := laneKey{"q", "t", 5}
	all := func(laneKey) bool { return true }
	known := func() *lanes {
		l := &lanes{}
		l.replace("ns", map[laneKey]int64{k: 100}, time.Now(), 0)
		return l
	}

	l := known()
	l.add("ns", k, 50)
	if got := l.asked("ns", all); len(got) != 1 || got[0].bound != 50 {
		t.Errorf("after an earlier row the lane is %+v", got)
	}
	l.add("ns", k, 70)
	if got := l.asked("ns", all); got[0].bound != 50 {
		t.Errorf("after a later row the lane is %+v", got)
	}

	l = known()
	seen := l.asked("ns", all)[0]
	l.add("ns", k, 200)
	l.settle("ns", []laneSeen{{k, seen.version, noRows}})
	if got := l.asked("ns", all); len(got) != 1 {
		t.Error("a lane that was seen empty before a row was added is gone")
	}
	l.settle("ns", []laneSeen{{k, seen.version, 300}})
	if got := l.asked("ns", all); got[0].bound > 200 {
		t.Errorf("the bound %d is later than a row that was added meanwhile", got[0].bound)
	}
	seen = l.asked("ns", all)[0]
	l.settle("ns", []laneSeen{{k, seen.version, noRows}})
	if got := l.asked("ns", all); len(got) != 0 {
		t.Errorf("a lane that is empty is kept: %+v", got)
	}

	l = known()
	if need, _ := l.needsReading("ns", time.Now()); need {
		t.Error("lanes that nobody else wrote to are read again")
	}
	l.invalidate()
	if need, _ := l.needsReading("ns", time.Now()); !need {
		t.Error("lanes that others wrote to are not read again")
	}
}
