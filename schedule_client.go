package weaver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/schedule"
	"github.com/goweaver/weaver/store"
)

// ScheduledAt returns the scheduled time of the run to which the handler's task belongs. false: the
// task is not part of a run of a schedule, for example a task that a handler started.
func ScheduledAt(ctx context.Context) (time.Time, bool) {
	a, err := engine.From(ctx)
	if err != nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, a.Task().Metadata[schedule.Metadata])
	return at, err == nil
}

// ScheduleInfo is a schedule as readers see it.
type ScheduleInfo struct {
	Name    string    `json:"name"`
	Version int       `json:"version"`           // of its definition: rises when the rule or the work changes
	When    string    `json:"when"`              // the rule in words: "0 3 * * * in Europe/Berlin"
	Next    time.Time `json:"next,omitzero"`     // the next scheduled time; zero: none, or paused
	FiresAt time.Time `json:"fires_at,omitzero"` // Next with its jitter

	Cron      string        `json:"cron,omitempty"`
	Timezone  string        `json:"timezone,omitempty"`
	Every     string        `json:"every,omitempty"` // a duration: "15m"
	NotBefore time.Time     `json:"not_before,omitzero"`
	NotAfter  time.Time     `json:"not_after,omitzero"`
	Overlap   OverlapPolicy `json:"overlap"`
	CatchUp   string        `json:"catch_up"`         // a duration
	Jitter    string        `json:"jitter,omitempty"` // a duration

	Type    string `json:"task_type,omitempty"` // of the task that it enqueues
	Queue   string `json:"queue,omitempty"`     // of the task
	JobName string `json:"job_name,omitempty"`  // of the job that it enqueues
	Tasks   int    `json:"tasks"`               // number of tasks of a run

	Metadata map[string]string `json:"metadata,omitempty"` // of the job

	Program     string `json:"program,omitempty"`      // that declares it (Config.Program); "": PutSchedule
	CodeVersion int    `json:"code_version,omitempty"` // of the program

	Queued []time.Time    `json:"queued,omitempty"` // times that wait for the end of the last run
	Last   *ScheduleRun   `json:"last,omitempty"`   // the last run
	Paused *SchedulePause `json:"paused,omitempty"` // nil: active

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// ScheduleRun is a run of a schedule.
type ScheduleRun struct {
	At    time.Time `json:"at"` // the scheduled time, or that of the trigger
	Task  TaskID    `json:"task_id,omitzero"`
	Job   JobID     `json:"job_id,omitzero"`
	State string    `json:"state,omitempty"` // of the task or the job; "": it is gone
}

// SchedulePause is the pause of a schedule.
type SchedulePause struct {
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// ScheduleFire is what became of a scheduled time, or of several consecutive ones.
type ScheduleFire struct {
	At         time.Time      `json:"at"`
	Until      time.Time      `json:"until,omitzero"` // the last of several that were skipped
	Count      int            `json:"count"`
	Kind       store.FireKind `json:"kind"` // fired, skipped, queued
	Reason     string         `json:"reason,omitempty"`
	By         string         `json:"by,omitempty"` // who asked for it; "": the schedule
	Task       TaskID         `json:"task_id,omitzero"`
	Job        JobID          `json:"job_id,omitzero"`
	RecordedAt time.Time      `json:"recorded_at"`
}

// PutSchedule creates a schedule, or changes the one with its name. The times of a changed rule count
// from now; a pause stays. A schedule that a program declares can be changed, until the program starts
// again. Option: SeenVersion. Errors: ErrInvalidSchedule.
func (c *Client) PutSchedule(ctx context.Context, s Schedule, opts ...OperateOption) (ScheduleInfo, error) {
	rule, work, err := s.stored(c)
	if err != nil {
		return ScheduleInfo{}, fmt.Errorf("put: %w", err)
	}
	return c.writeSchedule(ctx, "put_schedule", s.name, opts, func(at *schedule.Schedule, now time.Time, _ store.Audit) (w store.WriteSchedule, changed bool, err error) {
		rule := rule
		if at != nil {
			rule.Program, rule.CodeVersion = at.Rule.Program, at.Rule.CodeVersion
		}
		return schedule.Put(at, s.name, rule, work, now)
	})
}

// PauseSchedule stops a schedule until ResumeSchedule. Times that wait for a run are skipped; runs
// continue. ErrState: it is paused already.
func (c *Client) PauseSchedule(ctx context.Context, name string, opts ...OperateOption) (ScheduleInfo, error) {
	return c.existing(ctx, "pause_schedule", name, opts, func(s *schedule.Schedule, now time.Time, a store.Audit) (store.WriteSchedule, error) {
		return s.Pause(a.By, a.Reason, now)
	})
}

// ResumeSchedule ends the pause of a schedule. The times of the pause do not fire. ErrState: it is not
// paused.
func (c *Client) ResumeSchedule(ctx context.Context, name string, opts ...OperateOption) (ScheduleInfo, error) {
	return c.existing(ctx, "resume_schedule", name, opts, func(s *schedule.Schedule, now time.Time, _ store.Audit) (store.WriteSchedule, error) {
		return s.Resume(now)
	})
}

// TriggerSchedule enqueues a run now, whatever the pause and the overlap. The run is Last of the
// answer; the next time of the schedule stays.
func (c *Client) TriggerSchedule(ctx context.Context, name string, opts ...OperateOption) (ScheduleInfo, error) {
	return c.existing(ctx, "trigger_schedule", name, opts, func(s *schedule.Schedule, now time.Time, a store.Audit) (store.WriteSchedule, error) {
		return s.Trigger(a.By, a.Reason, now, c.ids), nil
	})
}

// DeleteSchedule deletes a schedule and the records of its fires. Runs stay. A schedule that a program
// declares comes back when the program starts again.
func (c *Client) DeleteSchedule(ctx context.Context, name string, opts ...OperateOption) error {
	_, err := c.existing(ctx, "delete_schedule", name, opts, func(s *schedule.Schedule, _ time.Time, _ store.Audit) (store.WriteSchedule, error) {
		return s.Delete(), nil
	})
	return err
}

// Backfilled is the answer of BackfillSchedule.
type Backfilled struct {
	Times int `json:"times"` // scheduled times of the span
	Fired int `json:"fired"` // runs enqueued; the others had fired before
}

// BackfillSchedule enqueues a run for each time of a span, from one instant on and before another, that
// has not fired: times that were missed or skipped, or from before the schedule existed. The runs are
// enqueued at once, whatever the overlap: a ConcurrencyKey limits how many run together. A span has at
// most 10,000 times. It works in parts; repeating it after an error continues. DryRun only counts.
func (c *Client) BackfillSchedule(ctx context.Context, name string, from, to time.Time, opts ...OperateOption) (got Backfilled, err error) {
	var set operateSettings
	if err := set.apply(opts); err != nil {
		return got, fmt.Errorf("backfill schedule %s: %w", name, err)
	}
	dry := set.many != nil && set.many.dryRun
	first := true
	for at := from; ; {
		next, fired := time.Time{}, 0
		_, err := c.existing(ctx, "backfill_schedule", name, opts, func(s *schedule.Schedule, now time.Time, a store.Audit) (w store.WriteSchedule, err error) {
			if first {
				if got.Times, err = s.CheckBackfill(from, to, now); err != nil {
					return w, fmt.Errorf("%w: %w", ErrInvalidOption, err)
				}
			}
			if dry {
				return w, errDryRun
			}
			records, err := c.records(ctx, name, at, to)
			if err != nil {
				return w, err
			}
			w, next = s.Backfill(at, to, a.By, a.Reason, records, c.ids, now)
			fired = 0
			for i := range w.Fires {
				if w.Fires[i].Kind == store.FireFired {
					fired++
				}
			}
			return w, nil
		})
		if errors.Is(err, errDryRun) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got.Fired += fired
		if first, at = false, next; next.IsZero() {
			return got, nil
		}
	}
}

var errDryRun = errors.New("dry run")

// records returns the records of a span, and those before it to the first one that is of a scheduled time.
func (c *Client) records(ctx context.Context, name string, from, to time.Time) (all []store.ScheduleFire, err error) {
	for before := to; ; {
		page, err := c.store.Schedules(ctx, c.ns, store.ScheduleFilter{Name: name, Fires: true, To: before, From: from, Limit: store.MaxScheduleFires})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Fires...)
		if len(page.Fires) < store.MaxScheduleFires {
			break
		}
		before = page.Fires[len(page.Fires)-1].At
	}
	page, err := c.store.Schedules(ctx, c.ns, store.ScheduleFilter{Name: name, Fires: true, To: from})
	for i := range page.Fires {
		all = append(all, page.Fires[i])
		if page.Fires[i].Kind != store.FireFired || page.Fires[i].Reason == "" { // a run out of turn may be within skipped times
			break
		}
	}
	return all, err
}

// existing applies a verb to a schedule that exists.
func (c *Client) existing(ctx context.Context, verb, name string, opts []OperateOption, move func(*schedule.Schedule, time.Time, store.Audit) (store.WriteSchedule, error)) (ScheduleInfo, error) {
	return c.writeSchedule(ctx, verb, name, opts, func(s *schedule.Schedule, now time.Time, a store.Audit) (store.WriteSchedule, bool, error) {
		if s == nil {
			return store.WriteSchedule{}, false, fmt.Errorf("schedule %s in namespace %q: %w", name, c.ns, ErrNotFound)
		}
		w, err := move(s, now, a)
		return w, err == nil, err
	})
}

// writeTries bounds the tries of a verb against the fires of a busy schedule.
const writeTries = 20

// writeSchedule reads a schedule, writes what move says, and repeats both if the row changed meanwhile.
func (c *Client) writeSchedule(ctx context.Context, verb, name string, opts []OperateOption, move func(*schedule.Schedule, time.Time, store.Audit) (w store.WriteSchedule, changed bool, err error)) (ScheduleInfo, error) {
	what := verb + " " + name
	if engine.StepTxOf(ctx) != nil {
		return ScheduleInfo{}, fmt.Errorf("%s: %w", what, ErrNestedTx)
	}
	var set operateSettings
	if err := cmp.Or(set.apply(opts), set.problem(optionsOf(store.WriteSchedule{Verb: verb})), store.Require(c.store, store.CanSchedule)); err != nil {
		return ScheduleInfo{}, fmt.Errorf("%s: %w", what, err)
	}
	for try := 1; ; try++ {
		s, now, err := c.readSchedule(ctx, name)
		if err != nil {
			return ScheduleInfo{}, fmt.Errorf("%s: %w", what, err)
		}
		err = set.seenVersion(name, s)
		var w store.WriteSchedule
		changed := false
		if err == nil {
			w, changed, err = move(s, now, set.audit)
		}
		if err != nil {
			return ScheduleInfo{}, fmt.Errorf("%s: %w", what, err)
		}
		if !changed {
			return c.Schedule(ctx, name)
		}
		w.Audit = set.audit
		w.Verb = verb
		got, err := c.store.Operate(ctx, c.ns, w)
		if err == nil {
			err = got[0].Err
		}
		switch {
		case err == nil:
			c.store.Wake(c.ns)
			if w.Delete {
				return ScheduleInfo{}, nil
			}
			return c.Schedule(ctx, name)
		case errors.Is(err, store.ErrChanged) && try < writeTries:
		default:
			return ScheduleInfo{}, fmt.Errorf("%s: %w", what, err)
		}
	}
}

// readSchedule returns a schedule, or nil, and the store's time.
func (c *Client) readSchedule(ctx context.Context, name string) (*schedule.Schedule, time.Time, error) {
	page, err := c.store.Schedules(ctx, c.ns, store.ScheduleFilter{Name: name})
	if err != nil || len(page.Schedules) == 0 {
		return nil, page.Now, err
	}
	s, err := schedule.Read(page.Schedules[0])
	return s, page.Now, err
}

// Schedule returns a schedule. Error: ErrNotFound.
func (c *Client) Schedule(ctx context.Context, name string) (ScheduleInfo, error) {
	s, _, err := c.readSchedule(ctx, name)
	if err == nil && s == nil {
		err = fmt.Errorf("schedule %s in namespace %q: %w", name, c.ns, ErrNotFound)
	}
	if err != nil {
		return ScheduleInfo{}, fmt.Errorf("get: %w", err)
	}
	return c.scheduleInfo(ctx, s)
}

// Schedules returns up to limit (0: 100) schedules by name, those after a name.
func (c *Client) Schedules(ctx context.Context, after string, limit int) (list []ScheduleInfo, err error) {
	page, err := c.store.Schedules(ctx, c.ns, store.ScheduleFilter{After: after, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	for i := range page.Schedules {
		s, err := schedule.Read(page.Schedules[i])
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		info, err := c.scheduleInfo(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		list = append(list, info)
	}
	return list, nil
}

// ScheduleFires returns up to limit (0: 100) fires of a schedule before an instant (zero: all), newest
// first. Records are kept for 90 days, or the last 10,000 times if these are less.
func (c *Client) ScheduleFires(ctx context.Context, name string, before time.Time, limit int) ([]ScheduleFire, error) {
	page, err := c.store.Schedules(ctx, c.ns, store.ScheduleFilter{Name: name, Fires: true, To: before, Limit: limit})
	if err == nil && len(page.Schedules) == 0 {
		err = fmt.Errorf("schedule %s in namespace %q: %w", name, c.ns, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("list fires: %w", err)
	}
	fires := make([]ScheduleFire, len(page.Fires))
	for i := range page.Fires {
		f := &page.Fires[i]
		fires[i] = ScheduleFire{At: f.At, Count: f.Count, Kind: f.Kind, Reason: f.Reason, By: f.By, Task: f.Task, Job: f.Job, RecordedAt: f.RecordedAt}
		if f.Until.After(f.At) {
			fires[i].Until = f.Until
		}
	}
	return fires, nil
}

// NextFires returns the next n times of a schedule, at most 1,000, whether it is paused or not.
func (c *Client) NextFires(ctx context.Context, name string, n int) (times []time.Time, err error) {
	s, _, err := c.readSchedule(ctx, name)
	if err == nil && s == nil {
		err = fmt.Errorf("schedule %s in namespace %q: %w", name, c.ns, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("next fires: %w", err)
	}
	return s.Upcoming(min(n, store.MaxScheduleFires)), nil
}

func (c *Client) scheduleInfo(ctx context.Context, s *schedule.Schedule) (ScheduleInfo, error) {
	d := s.Describe()
	info := ScheduleInfo{
		Name: s.Row.Name, Version: s.State.Version, When: s.Rule.Spec.String(), Next: d.Next, FiresAt: d.FiresAt,
		Cron: s.Rule.Cron, Timezone: s.Rule.Timezone, NotBefore: s.Rule.NotBefore, NotAfter: s.Rule.NotAfter,
		Every: d.Every, Overlap: d.Overlap, CatchUp: d.CatchUp, Jitter: d.Jitter,
		Tasks: len(s.Work.Tasks), Program: s.Rule.Program, CodeVersion: s.Rule.CodeVersion,
		Queued: slices.Clone(s.State.Queued), CreatedAt: s.Row.CreatedAt, UpdatedAt: s.Row.UpdatedAt,
	}
	if s.Work.Job != nil {
		info.JobName, info.Metadata = s.Work.Job.Name, maps.Clone(s.Work.Job.Meta)
	} else {
		info.Type, info.Queue = s.Work.Tasks[0].Type, s.Work.Tasks[0].Queue
	}
	if p := s.State.Paused; p != nil {
		info.Paused = &SchedulePause{At: p.At, By: p.By, Reason: p.Reason}
	}
	run := s.State.Last
	if run == nil {
		return info, nil
	}
	info.Last = &ScheduleRun{At: run.At, Task: run.Task, Job: run.Job}
	if !run.Job.IsZero() {
		job, err := store.JobOf(ctx, c.store, c.ns, run.Job)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return info, err
		}
		info.Last.State = string(job.State)
		return info, nil
	}
	tasks, err := c.store.Tasks(ctx, c.ns, run.Task)
	if len(tasks) > 0 {
		info.Last.State = string(tasks[0].State)
	}
	return info, err
}
