package schedule

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/calendar"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// MaxBackfill is the maximum number of scheduled times of one backfill.
const MaxBackfill = 10_000

const (
	// keepFires is the retention of the records of fires. It is shorter, but at least a day, if a
	// schedule has more than keepCount times in it.
	keepFires = 90 * 24 * time.Hour
	keepCount = 10_000
	// backfillBatch is the maximum number of runs of one write.
	backfillBatch = 100
)

// Put returns the write that creates a schedule (s is nil), or changes its definition. changed is
// false if it is as wanted already. A pause stays.
func Put(s *Schedule, name string, rule Rule, work Work, now time.Time) (w store.WriteSchedule, changed bool, err error) {
	when, err := calendar.New(rule.Spec)
	if err != nil {
		return w, false, err
	}
	rule.Spec = when.Spec()
	next := Schedule{Row: store.Schedule{Name: name}, Rule: rule, Work: work, When: when, State: State{Version: 1, After: now}}
	if s != nil {
		sameRule := string(encode(s.Rule)) == string(encode(rule))
		if sameRule && s.Work.Equal(&work) {
			return w, false, nil
		}
		next.Row, next.State = s.Row, s.State
		declared := rule
		declared.Program, declared.CodeVersion = s.Rule.Program, s.Rule.CodeVersion
		if string(encode(s.Rule)) != string(encode(declared)) || !s.Work.Equal(&work) {
			next.State.Version++
		}
		if string(encode(s.Rule.Spec)) != string(encode(rule.Spec)) { // times before the change are not missed
			next.State.After = later(s.State.After, now)
		}
	}
	next.plan(&next.State)
	w = next.write(next.State, now)
	w.Rule, w.Work = encode(rule), work.Document()
	return w, true, nil
}

// Declare is Put for a schedule that the code of a program declares. It changes nothing if a newer
// version of the program, which still runs (newer), has declared it; and it ends the pause of a
// schedule that a version without it had paused.
func Declare(s *Schedule, name string, rule Rule, work Work, newer func(version int) bool, now time.Time) (w store.WriteSchedule, changed bool, err error) {
	if s == nil {
		return Put(nil, name, rule, work, now)
	}
	if s.Rule.Program != rule.Program {
		return w, false, fmt.Errorf("schedule %s is declared by %s: give this one another name, or delete that one", name, declaredBy(&s.Rule))
	}
	version := s.Rule.CodeVersion
	if s.State.Paused != nil {
		version = max(version, s.State.Paused.Gone)
	}
	if version > rule.CodeVersion && newer(version) {
		return w, false, nil
	}
	w, changed, err = Put(s, name, rule, work, now)
	if err != nil || s.State.Paused == nil || s.State.Paused.Gone == 0 {
		return w, changed, err
	}
	changedTo := *s
	if changed {
		changedTo.Rule, changedTo.Work = rule, work
		if changedTo.When, err = calendar.New(rule.Spec); err != nil {
			return w, false, err
		}
		changedTo.State.Version++
	}
	resumed, err := changedTo.Resume(now)
	resumed.Rule, resumed.Work = w.Rule, w.Work
	return resumed, true, err
}

func declaredBy(r *Rule) string {
	if r.Program == "" {
		return "a call or a person"
	}
	return "the program " + r.Program
}

// Gone returns the write that pauses a schedule which a newer version of its program no longer
// declares. gone is false if that is not so.
func (s *Schedule) Gone(program string, version int, now time.Time) (w store.WriteSchedule, gone bool) {
	if s.Rule.Program != program || s.Rule.CodeVersion >= version || s.State.Paused != nil {
		return w, false
	}
	return s.pause(Pause{At: now, Reason: fmt.Sprintf("version %d of %s no longer declares it", version, program), Gone: version}), true
}

// Pause returns the write that pauses the schedule. Fires that wait are skipped.
func (s *Schedule) Pause(by, reason string, now time.Time) (store.WriteSchedule, error) {
	if p := s.State.Paused; p != nil && p.Gone == 0 {
		return store.WriteSchedule{}, fmt.Errorf("schedule %s is paused already: %w", s.Row.Name, store.ErrState)
	}
	return s.pause(Pause{At: now, By: by, Reason: reason}), nil
}

func (s *Schedule) pause(p Pause) store.WriteSchedule {
	st := s.State
	st.Paused, st.Queued = &p, nil
	w := s.write(st, p.At)
	for _, at := range s.State.Queued {
		w.Fires = append(w.Fires, skip(at, "the schedule was paused"))
	}
	return w
}

// Resume returns the write that ends the pause. Times of the pause do not fire.
func (s *Schedule) Resume(now time.Time) (store.WriteSchedule, error) {
	if s.State.Paused == nil {
		return store.WriteSchedule{}, fmt.Errorf("schedule %s is not paused: %w", s.Row.Name, store.ErrState)
	}
	st := s.State
	st.Paused, st.After = nil, later(st.After, now)
	s.plan(&st)
	return s.write(st, now), nil
}

// Trigger returns the write that enqueues a run now, whatever the pause and the overlap.
func (s *Schedule) Trigger(by, reason string, now time.Time, ids *task.IDs) store.WriteSchedule {
	st := s.State
	if reason == "" {
		reason = "triggered"
	}
	at := s.between(now)
	f := s.firing(at, ids, by, reason)
	st.Last, st.Triggered = runOf(&f, at), at
	w := s.write(st, now)
	w.Fires = []store.Firing{f}
	return w
}

// between returns the time of a run that is triggered: now, or a moment before if the schedule itself, or another
// trigger, has that time.
func (s *Schedule) between(now time.Time) time.Time {
	at := now
	if last := s.State.Triggered; !last.After(now) && now.Sub(last) < time.Millisecond {
		at = last.Add(-time.Microsecond)
	}
	t, ok := s.When.Latest(at)
	if ok && t.Equal(at) || s.State.Last != nil && s.State.Last.At.Equal(at) {
		at = at.Add(-time.Microsecond)
	}
	return at
}

// Delete returns the write that deletes the schedule.
func (s *Schedule) Delete() store.WriteSchedule {
	return store.WriteSchedule{Name: s.Row.Name, Revision: s.Row.Revision, Delete: true}
}

func (s *Schedule) write(st State, now time.Time) store.WriteSchedule {
	return store.WriteSchedule{Name: s.Row.Name, Revision: s.Row.Revision, State: encode(st), LookAt: st.look(now)}
}

// CheckBackfill returns the number of scheduled times from one instant on and before another, or why
// they cannot be made up for.
func (s *Schedule) CheckBackfill(from, to, now time.Time) (int, error) {
	switch n := s.When.Count(from, to); {
	case !from.Before(to):
		return 0, errors.New("the span is empty: its end must be after its begin")
	case to.After(s.State.After.Add(time.Second)) && to.After(now):
		return 0, fmt.Errorf("the span ends in the future: it may end at %s", stamp(now))
	case from.Before(s.State.Pruned):
		return 0, fmt.Errorf("what fired before %s is no longer on record, and could fire twice: begin there", stamp(s.State.Pruned))
	case n > MaxBackfill:
		return 0, fmt.Errorf("the span has %d scheduled times, and one backfill may have %d: use several spans", n, MaxBackfill)
	default:
		return int(n), nil
	}
}

// Backfill returns the write of the first runs of a span, and where to go on: next is zero at the
// end. Times that have fired are left out. records are the fires of the schedule in the span, and the
// one before it.
func (s *Schedule) Backfill(from, to time.Time, by, reason string, records []store.ScheduleFire, ids *task.IDs, now time.Time) (w store.WriteSchedule, next time.Time) {
	if reason == "" {
		reason = "backfill"
	}
	w = s.write(s.State, now)
	fired := make(map[int64]bool, len(records))
	for i := range records {
		if records[i].Kind == store.FireFired || records[i].Kind == store.FireQueued {
			fired[records[i].At.UnixMicro()] = true
		}
	}
	batch := max(1, min(backfillBatch, MaxTasks/len(s.Work.Tasks)))
	var last time.Time
	for at := range s.When.Fires(from, to) {
		if at.After(s.State.After) { // the schedule itself decides it
			break
		}
		if len(w.Fires) == batch {
			next = at
			break
		}
		if !fired[at.UnixMicro()] {
			w.Fires, last = append(w.Fires, s.firing(at, ids, by, reason)), at
		}
	}
	if len(w.Fires) > 0 {
		w.Fires = append(w.Fires, s.rest(records, w.Fires[0].At, last)...)
		slices.SortFunc(w.Fires, func(a, b store.Firing) int { return a.At.Compare(b.At) })
	}
	return w, next
}

// rest returns the records of what remains of ranges of skipped times, of which the times from one to
// another now fire.
func (s *Schedule) rest(records []store.ScheduleFire, first, last time.Time) (rest []store.Firing) {
	for i := range records {
		r := &records[i]
		if r.Kind != store.FireSkipped || !r.Until.After(r.At) || r.Until.Before(first) || r.At.After(last) {
			continue
		}
		if r.At.Before(first) {
			rest = append(rest, s.skipped(r.At, first, r.Reason))
		}
		if after, ok := s.When.Next(last); ok && !after.After(r.Until) {
			rest = append(rest, s.skipped(after, r.Until.Add(time.Second), r.Reason))
		}
	}
	return rest
}

// prune sets the time before which records of fires are deleted, now and then.
func (s *Schedule) prune(w *store.WriteSchedule, st *State, now time.Time) {
	keep := keepFires
	if day := s.When.Count(now.Add(-24*time.Hour), now); day > 0 {
		keep = min(keep, max(24*time.Hour, keepCount*24*time.Hour/time.Duration(day)))
	}
	if before := now.Add(-keep); before.Sub(st.Pruned) > keep/100 {
		st.Pruned, w.Prune = before, before
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
