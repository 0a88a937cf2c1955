package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// due returns the line of a due task with n tasks before it, the first of them due since waited.
func due(n int, waited time.Duration, limits ...store.LimitLine) *store.Line {
	return &store.Line{Ahead: store.CountOf(n), Queue: store.CountOf(n), Since: ago(waited), Limits: limits}
}

// waitsIn returns the history of a due task, and gives the pace its line.
func waitsIn(line *store.Line, p *explain.Pace) *store.History {
	p.Line = line
	return &store.History{Task: task.Task{ID: id(1), Type: charge, Queue: "default", State: task.Ready, ReadyAt: line.Since}}
}

// server returns a live worker with busy of its slots taken.
func server(slots, busy int) store.WorkerStatus {
	return store.WorkerStatus{
		WorkerInfo: store.WorkerInfo{Types: []string{charge}, Announcement: store.Announcement{Slots: slots}},
		Running:    store.CountOf(busy),
	}
}

// pace returns a pace of workers whose lane ended n attempts in each of the last 10-second slots.
func pace(n int64, run time.Duration, workers ...store.WorkerStatus) *explain.Pace {
	p := &explain.Pace{At: now, Workers: workers}
	for at := ago(explain.PaceSpan); at.Before(now) && n > 0; at = at.Add(store.StatsSlot) {
		p.Lane = append(p.Lane, explain.PaceSlot{From: at, Ended: n, Run: run})
	}
	p.Queue = p.Lane
	return p
}

func limited(n int, l store.LimitRow) store.LimitLine {
	return store.LimitLine{LimitRow: l, Ahead: store.CountOf(n)}
}

func TestStartOf(t *testing.T) {
	t.Parallel()
	partner := store.LimitRow{Name: "rate:partner", Limit: store.Limit{Starts: 10, Per: time.Second, Burst: 1}, Arrival: in(50 * time.Millisecond)}
	silent := server(4, 4)
	silent.Silent = true
	elsewhere := server(4, 0)
	elsewhere.Queues = []string{"other"}
	troubled := server(4, 0)
	troubled.Troubles = []store.Trouble{{TaskType: charge}}
	queueOnly := pace(10, time.Second, server(4, 4))
	queueOnly.Lane = nil
	var begun []task.Task
	for range 30 {
		begun = append(begun, task.Task{Type: charge, Queue: "default", State: task.Running, StartedAt: ago(time.Minute)})
	}
	stuck := pace(0, 0, server(30, 30))
	stuck.Running = begun
	for name, c := range map[string]struct {
		line   *store.Line
		pace   *explain.Pace
		within time.Duration // an instant from now in the range; < 0: the latest time is unknown
		most   time.Duration // length of the range
		reason string
	}{
		"a backlog that moves":                    {due(340, time.Hour), pace(10, time.Second, server(4, 4)), 340 * time.Second, 5 * time.Minute, "340 tasks are before it and about 60 start per minute"},
		"the next of a backlog":                   {due(0, time.Hour), pace(10, time.Second, server(4, 4)), time.Second, 10 * time.Second, "no task is before it"},
		"a slow backlog":                          {due(2, time.Hour), pace(1, time.Minute, server(4, 4)), 20 * time.Second, 2 * time.Minute, "about 6 start"},
		"a worker that came just now":             {due(140, time.Hour), &explain.Pace{At: now, Workers: []store.WorkerStatus{server(4, 4)}, Lane: []explain.PaceSlot{{From: ago(10 * time.Second), Ended: 8, Run: time.Second}}}, 35 * time.Second, 6 * time.Minute, "140 tasks are before it"},
		"workers that have gone":                  {due(200, time.Hour), &explain.Pace{At: now, Workers: []store.WorkerStatus{server(1, 1)}, Lane: []explain.PaceSlot{{From: ago(4 * time.Minute), Ended: 1000, Run: 5 * time.Second}, {From: ago(time.Minute), Ended: 12, Run: 5 * time.Second}}}, 1000 * time.Second, 50 * time.Minute, "200 tasks are before it"},
		"a lane without starts in a moving queue": {due(60, time.Hour), queueOnly, time.Minute, 2 * time.Minute, "about 60 start"},
		"a free slot":                             {due(0, time.Second), pace(0, 0, server(4, 3)), time.Second, 10 * time.Second, "1 slot is free and no task is before it"},
		"a young backlog":                         {due(100, time.Second), pace(1, 4*time.Second, server(4, 4)), 100 * time.Second, 4 * time.Minute, "100 tasks are before it, and 4 slots run tasks that take about 4s each"},
		"a young backlog of an unknown type":      {due(100, time.Second), pace(0, 0, server(4, 4)), -1, 0, `nothing of its type has started in queue "default" in the last 5m`},
		"nothing starts":                          {due(3, time.Hour), pace(0, 0, server(4, 4)), -1, 0, "nothing of its type has started"},
		"long attempts that none has ended of":    {due(3, time.Second), stuck, -1, 0, "no slot is free, and no attempt of its type has ended"},
		"long attempts that began before":         {due(3, time.Minute), &explain.Pace{At: now, Workers: []store.WorkerStatus{server(4, 4)}, Lane: []explain.PaceSlot{{From: ago(2 * time.Minute), Ended: 4, Run: 10 * time.Minute}}}, 10 * time.Minute, 40 * time.Minute, "4 slots run tasks that take about 10m each"},
		"a free slot and nothing starts":          {due(0, time.Minute), &explain.Pace{At: now, Workers: []store.WorkerStatus{server(4, 0)}, Lane: []explain.PaceSlot{{From: ago(2 * time.Minute), Ended: 4, Run: time.Second}}}, -1, 0, `4 slots are free, and nothing of its type has started in queue "default" in the last 1m`},
		"no worker":                               {due(3, time.Hour), pace(10, time.Second), -1, 0, "no live worker runs tasks of type " + charge},
		"no live worker":                          {due(3, time.Hour), pace(10, time.Second, silent, elsewhere, troubled), -1, 0, "no live worker"},
		"a rate with free slots":                  {due(49, time.Second, limited(49, partner)), pace(0, 0, server(60, 1)), 4950 * time.Millisecond, 8 * time.Second, "49 tasks are before it with the limit rate:partner, which lets 10 start in 1s"},
		"a rate with a burst that was used":       {due(49, time.Second, limited(49, store.LimitRow{Name: "rate:k", Limit: store.Limit{Starts: 10, Per: time.Second, Burst: 5}, Arrival: in(500 * time.Millisecond)})), pace(0, 0, server(20, 1)), 5 * time.Second, 8 * time.Second, "rate:k"},
		"the few within a burst":                  {due(3, time.Second, limited(3, store.LimitRow{Name: "rate:k", Limit: store.Limit{Starts: 1, Per: time.Second, Burst: 30}, Arrival: in(30 * time.Second)})), pace(0, 0, server(20, 1)), 4 * time.Second, 8 * time.Second, "rate:k"},
		"a rate slower than the backlog moved":    {due(600, time.Hour, limited(600, partner)), pace(1000, time.Second, server(60, 1)), time.Minute, 20 * time.Second, "rate:partner"},
		"a rate and no free slot":                 {due(49, time.Second, limited(49, partner)), pace(0, 0, server(4, 4)), -1, 0, "rate:partner"},
		"a rest":                                  {due(0, time.Minute, limited(0, store.LimitRow{Name: "queue:default", RestUntil: in(time.Hour)})), pace(0, 0, server(4, 0)), time.Hour, 15 * time.Minute, "queue:default, which a handler asked to rest"},
		"a limit of running tasks":                {due(9, time.Second, limited(9, store.LimitRow{Name: "queue:default", Limit: store.Limit{Running: 2}, InUse: 2})), pace(1, 4*time.Second, server(20, 2)), 20 * time.Second, time.Minute, "lets 2 run at once, for about 4s each"},
		"a limit of running tasks and no history": {due(9, time.Second, limited(9, store.LimitRow{Name: "queue:default", Limit: store.Limit{Running: 2}, InUse: 2})), pace(0, 0, server(20, 2)), -1, 0, "how much time they take is unknown"},
		"more than are counted":                   {due(20_000, time.Hour), pace(10, time.Second, server(4, 4)), -1, 0, "more than 10000 tasks are before it"},
	} {
		s := explain.StartOf(waitsIn(c.line, c.pace), c.pace)
		if s == nil || !strings.Contains(s.Reason, c.reason) {
			t.Errorf("%s: %+v, want the reason %q", name, s, c.reason)
			continue
		}
		at := in(c.within)
		switch known := !s.Latest.IsZero(); {
		case known != (c.within >= 0):
			t.Errorf("%s: latest is %v", name, s.Latest)
		case known && (at.Before(s.Earliest) || at.After(s.Latest)):
			t.Errorf("%s: %s to %s, want %s within", name, s.Earliest.Sub(now), s.Latest.Sub(now), c.within)
		case known && s.Latest.Sub(s.Earliest) > c.most:
			t.Errorf("%s: %s to %s, want a range of at most %s", name, s.Earliest.Sub(now), s.Latest.Sub(now), c.most)
		}
	}
}

func TestStartOf_NotDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state   task.State
		waiting task.Waiting
		reason  string
	}{
		{task.Pending, task.WaitDelay, "it is due then"},
		{task.Pending, task.WaitRetry, "it is due then"},
		{task.Pending, task.WaitPaused, "paused"},
		{task.Pending, task.WaitDeps, "other tasks"},
		{task.Pending, task.WaitChildren, "other tasks"},
		{task.Pending, task.WaitSignal, "a signal"},
		{task.Pending, task.WaitConcurrency, "concurrency key"},
		{task.Blocked, task.WaitManual, "blocked"},
		{task.Running, task.WaitNone, ""},
		{task.Succeeded, task.WaitNone, ""},
	} {
		h := &store.History{Task: task.Task{State: c.state, Waiting: c.waiting, ReadyAt: in(time.Hour)}}
		s := explain.StartOf(h, nil)
		if c.reason == "" {
			if s != nil {
				t.Errorf("%s: %+v", c.state, s)
			}
			continue
		}
		if s == nil || !strings.Contains(s.Reason, c.reason) || !s.Latest.IsZero() || s.Earliest.IsZero() != !explain.WaitsForTime(c.waiting) {
			t.Errorf("%s %s: %+v, want the reason %q", c.state, c.waiting, s, c.reason)
		}
	}
}

// The explanation of a due task says when it will start, as a range, a bound, or unknown.
func TestExplanation_Start(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line *store.Line
		pace *explain.Pace
		want string
	}{
		{due(340, time.Hour), pace(10, time.Second, server(4, 4)), "It will probably start between 2026-11-20T12:04:"},
		{due(0, time.Second), pace(0, 0, server(4, 3)), "It will probably start within 6s (by 2026-11-20T12:00:06Z): 1 slot is free and no task is before it."},
		{due(20_000, time.Hour), pace(10, time.Second, server(4, 4)), "It will probably not start before 2026-11-20T14:"},
		{due(3, time.Hour), pace(10, time.Second), "When it will start is unknown: no live worker runs"},
	} {
		e := explain.Explainer{Clock: clock, Command: func(args ...string) string { return strings.Join(args, " ") }, Depth: 1, Pace: c.pace}
		x, _ := e.Task(waitsIn(c.line, c.pace), explain.Running{}, explain.Known{})
		if !strings.HasPrefix(x.Notes[0], c.want) || x.Start == nil {
			t.Errorf("%q, want %q", x.Notes[0], c.want)
		}
	}
}
