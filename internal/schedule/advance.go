package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/calendar"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// lookAgain is the time after which an engine looks whether the last run has ended, while a fire
// waits for it.
const lookAgain = time.Second

// Reasons of skipped fires.
const (
	reasonMissed   = "no engine was running"
	reasonReplaced = "a later fire replaced it"
	reasonFull     = "100 fires wait already"
)

// AsksForRun reports whether Advance needs to know if the last run has ended.
func (s *Schedule) AsksForRun() bool {
	return s.State.Last != nil && s.Rule.overlap() != Allow
}

func (s *Schedule) fireAt() time.Time { return s.State.Next.Add(time.Duration(s.State.Delay)) }

// Advance returns the write that moves a schedule on at the store's time: fires that are due, and the
// next look. running reports that the last run has not ended. cancel is the run to cancel first, or
// nil.
func (s *Schedule) Advance(now time.Time, running bool, ids *task.IDs) (w store.WriteSchedule, cancel *Run) {
	st := s.State
	st.Queued = slices.Clone(st.Queued)
	w = store.WriteSchedule{Name: s.Row.Name, Revision: s.Row.Revision}
	fire := func(at time.Time) {
		w.Fires = append(w.Fires, s.firing(at, ids, "", ""))
		st.Last = runOf(&w.Fires[len(w.Fires)-1], at)
		running = s.Rule.overlap() != Allow
	}
	if len(st.Queued) > 0 && !running {
		fire(st.Queued[0])
		st.Queued = st.Queued[1:]
	}
	if st.Zone != s.When.ZoneVersion() {
		s.plan(&st)
	}
	if !st.Next.IsZero() && !st.Next.Add(time.Duration(st.Delay)).After(now) {
		at := s.latest(&st, now)
		w.NotBefore = at.Add(s.When.Delay(s.Row.Name, at))
		if st.Next.Before(at) {
			w.Fires = append(w.Fires, s.skipped(st.Next, at, reasonMissed))
		}
		switch overlap := s.Rule.overlap(); {
		case now.Sub(w.NotBefore) > s.Rule.catchUp():
			w.Fires = append(w.Fires, skip(at, fmt.Sprintf("%s until %s later, longer than the catch-up time of %s", reasonMissed, now.Sub(at).Round(time.Second), calendar.Duration(s.Rule.catchUp()))))
		case !running:
			fire(at)
		case overlap == Skip:
			w.Fires = append(w.Fires, skip(at, "the run of "+stamp(st.Last.At)+" has not ended"))
		case overlap == CancelRunning:
			for _, earlier := range st.Queued {
				w.Fires = append(w.Fires, skip(earlier, reasonReplaced))
			}
			st.Queued = []time.Time{at}
			w.Fires = append(w.Fires, queued(at))
		case len(st.Queued) >= MaxQueued:
			w.Fires = append(w.Fires, skip(at, reasonFull))
		default:
			st.Queued = append(st.Queued, at)
			w.Fires = append(w.Fires, queued(at))
		}
		st.After = at
		s.plan(&st)
		s.prune(&w, &st, now)
	}
	if len(st.Queued) > 0 && s.Rule.overlap() == CancelRunning && running {
		cancel = st.Last
	}
	slices.SortFunc(w.Fires, func(a, b store.Firing) int { return a.At.Compare(b.At) })
	w.State, w.LookAt = encode(st), st.look(now)
	return w, cancel
}

// latest returns the latest scheduled time that is due at a time, at or after Next.
func (s *Schedule) latest(st *State, now time.Time) time.Time {
	at, ok := s.When.Latest(now)
	for ok && at.After(st.Next) && at.Add(s.When.Delay(s.Row.Name, at)).After(now) {
		at, ok = s.When.Latest(at.Add(-time.Second))
	}
	if !ok || at.Before(st.Next) {
		return st.Next
	}
	return at
}

// plan sets the next scheduled time.
func (s *Schedule) plan(st *State) {
	st.Zone, st.Delay = s.When.ZoneVersion(), 0
	next, ok := s.When.Next(st.After)
	if !ok {
		st.Next = time.Time{}
		return
	}
	st.Next, st.Delay = next, calendar.Duration(s.When.Delay(s.Row.Name, next))
}

// look returns the time of the next look; zero: none.
func (st *State) look(now time.Time) time.Time {
	if st.Paused != nil {
		return time.Time{}
	}
	at := st.Next
	if !at.IsZero() {
		at = at.Add(time.Duration(st.Delay))
	}
	if again := now.Add(lookAgain); len(st.Queued) > 0 && (at.IsZero() || again.Before(at)) {
		return again
	}
	return at
}

// firing returns a fire with its run.
func (s *Schedule) firing(at time.Time, ids *task.IDs, by, reason string) store.Firing {
	return store.Firing{
		ScheduleFire: store.ScheduleFire{At: at, Until: at, Count: 1, Kind: store.FireFired, By: by, Reason: reason},
		Run:          s.Work.Run(s.Row.Name, at, ids),
	}
}

func runOf(f *store.Firing, at time.Time) *Run {
	if f.Run.Job != nil {
		return &Run{At: at, Job: f.Run.Job.ID}
	}
	return &Run{At: at, Task: f.Run.Tasks[0].ID}
}

// skipped returns the record of the scheduled times from one on and before another.
func (s *Schedule) skipped(from, to time.Time, reason string) store.Firing {
	f := skip(from, reason)
	if last, ok := s.When.Latest(to.Add(-time.Second)); ok && last.After(from) {
		f.Until = last
	}
	f.Count = max(1, int(s.When.Count(from, to)))
	return f
}

func skip(at time.Time, reason string) store.Firing {
	return store.Firing{ScheduleFire: store.ScheduleFire{At: at, Until: at, Count: 1, Kind: store.FireSkipped, Reason: reason}}
}

func queued(at time.Time) store.Firing {
	return store.Firing{ScheduleFire: store.ScheduleFire{At: at, Until: at, Count: 1, Kind: store.FireQueued}}
}
