package weaver

import (
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/calendar"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/schedule"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Schedule enqueues a task or a job at times that a rule gives: see NewSchedule. Its zero value is
// empty, and refused.
type Schedule struct {
	name     string
	work     Schedulable
	rule     schedule.Rule
	problems []error
}

// Schedulable is what a schedule enqueues: a Draft, or a *Job.
type Schedulable interface {
	// scheduled returns the submission of one run.
	scheduled(c *Client) (store.Submission, error)
}

// When is a rule for the times of a schedule: Cron or Every.
type When struct{ spec calendar.Spec }

// ScheduleOption is an option of NewSchedule.
type ScheduleOption interface{ applySchedule(*Schedule) }

type scheduleOption func(*Schedule)

func (o scheduleOption) applySchedule(s *Schedule) { o(s) }

// NewSchedule makes a schedule for Config.Schedules or Client.PutSchedule. Each time of when fires once,
// whatever crashes and however many engines run: the run and its record are one transaction. The run is
// a task, or a job, with the idempotency key schedule/NAME/TIME; its handlers ask ScheduledAt for the
// time.
//
//	weaver.NewSchedule("nightly", Report.With(in), weaver.Cron("0 3 * * *", "Europe/Berlin"))
//
// Defaults: a time is skipped while the last run has not ended (Overlap), and after an outage the
// latest missed time fires if it is at most an hour old (CatchUp). Inputs are kept in the store, never
// in the bucket; a run may have 1,000 tasks, and a megabyte of inputs and options.
func NewSchedule(name string, work Schedulable, when When, opts ...ScheduleOption) Schedule {
	s := Schedule{name: name, work: work, rule: schedule.Rule{Spec: when.spec}}
	if name == "" {
		s.problems = append(s.problems, errors.New("it has no name"))
	} else if err := checkScheduleName(name); err != nil {
		s.problems = append(s.problems, err)
	}
	if work == nil {
		s.problems = append(s.problems, errors.New("it enqueues nothing: give it a draft (a task type's With) or a job"))
	}
	for _, o := range opts {
		if o == nil {
			s.problems = append(s.problems, errors.New("an option is nil"))
			continue
		}
		o.applySchedule(&s)
	}
	if _, err := calendar.New(s.rule.Spec); err != nil {
		s.problems = append(s.problems, err)
	}
	return s
}

// maxScheduleName leaves room for the rest of an idempotency key.
const maxScheduleName = 200

func checkScheduleName(name string) error {
	if len(name) > maxScheduleName {
		return fmt.Errorf("its name has %d bytes, at most %d are allowed", len(name), maxScheduleName)
	}
	return option.CheckKey("its name", name)
}

// Name returns the schedule's name.
func (s Schedule) Name() string { return s.name }

// Err returns the problems of the schedule, all at once: ErrInvalidSchedule, or nil.
func (s Schedule) Err() error {
	if s.name == "" && len(s.problems) == 0 {
		return fmt.Errorf("%w: it is empty: make schedules with NewSchedule", ErrInvalidSchedule)
	}
	if len(s.problems) > 0 {
		return fmt.Errorf("%w %q: %w", ErrInvalidSchedule, s.name, errors.Join(s.problems...))
	}
	return nil
}

// Cron is a rule of five fields (minute, hour, day of month, month, day of week) or a name such as
// @daily, in a time zone of the IANA database; "" is UTC. Lists, ranges, steps, names of months and
// days, and L, W and # are understood.
//
// When clocks go forward, a time in the hour that is left out fires once at the first instant after
// it. When they go back, a time in the hour that comes twice fires at its first occurrence; if the
// minute or the hour is a wildcard, at both. docs/schedules.md has examples.
func Cron(expression, zone string) When {
	return When{calendar.Spec{Cron: expression, Timezone: zone}}
}

// Every is a rule of elapsed time: whole seconds, at least one, counted from 1970 in UTC, so that it
// never drifts. Every(24 * time.Hour) is not a civil day where clocks change: use Cron("@daily", zone).
func Every(d time.Duration) When { return When{calendar.Spec{Every: calendar.Duration(d)}} }

// OverlapPolicy says what becomes of a scheduled time while the last run has not ended. A run that is
// blocked or being undone has not ended.
type OverlapPolicy = schedule.Overlap

// The overlap policies.
const (
	OverlapSkip          = schedule.Skip          // it is skipped, and recorded as such; the default
	OverlapQueue         = schedule.Queue         // it waits for the end of all runs before it; at most 100 wait
	OverlapCancelRunning = schedule.CancelRunning // it cancels the run and waits for its end; it replaces a time that waits
	OverlapAllow         = schedule.Allow         // it starts a run beside the others
)

// Overlap sets the policy for times at which the last run has not ended; default OverlapSkip.
func Overlap(p OverlapPolicy) ScheduleOption {
	return scheduleOption(func(s *Schedule) {
		for _, known := range schedule.Overlaps() {
			if p == known {
				s.rule.Overlap = p
				return
			}
		}
		s.problems = append(s.problems, fmt.Errorf("Overlap(%q) is not known: want one of %v", p, schedule.Overlaps()))
	})
}

// CatchUp sets how old the latest missed time may be to fire after an outage; default 1 h. Earlier
// missed times never fire by themselves, and are recorded as skipped; Client.BackfillSchedule makes up
// for them. Times of a pause are not missed.
func CatchUp(d time.Duration) ScheduleOption {
	return scheduleOption(func(s *Schedule) {
		if d < time.Second {
			s.problems = append(s.problems, fmt.Errorf("CatchUp(%s): want 1s or more", d))
		}
		s.rule.CatchUp = calendar.Duration(d)
	})
}

// Jitter delays each fire by up to d, and never beyond the next one. The delay depends only on the
// name and the time, so that schedules of one time spread, and a time keeps its delay.
func Jitter(d time.Duration) ScheduleOption {
	return scheduleOption(func(s *Schedule) { s.rule.Jitter = calendar.Duration(d) })
}

// Between limits the times to those from one instant to another, both included; zero is no limit.
func Between(from, to time.Time) ScheduleOption {
	return scheduleOption(func(s *Schedule) { s.rule.NotBefore, s.rule.NotAfter = from, to })
}

// stored returns the rule and the work of the schedule.
func (s *Schedule) stored(c *Client) (schedule.Rule, schedule.Work, error) {
	if err := s.Err(); err != nil {
		return s.rule, schedule.Work{}, err
	}
	sub, err := s.work.scheduled(c)
	if err != nil {
		return s.rule, schedule.Work{}, fmt.Errorf("%w %q: %w", ErrInvalidSchedule, s.name, err)
	}
	for i := range sub.Tasks {
		if n := len(sub.Tasks[i].Input); n > c.limit {
			return s.rule, schedule.Work{}, fmt.Errorf("%w %q: %w: the input of %s is %d bytes, the limit is %d: pass a reference to the data", ErrInvalidSchedule, s.name, ErrTooLarge, sub.Tasks[i].Type, n, c.limit)
		}
	}
	work, err := schedule.NewWork(&sub)
	if err != nil {
		return s.rule, work, fmt.Errorf("%w %q: %w", ErrInvalidSchedule, s.name, err)
	}
	return s.rule, work, nil
}

func (d Draft) scheduled(c *Client) (store.Submission, error) {
	switch n := d.options(); {
	case n.IdempotencyKey != "":
		return store.Submission{}, fmt.Errorf("%s has an IdempotencyKey: each run of a schedule has its own", d.typeName)
	case n.Coalesce:
		return store.Submission{}, fmt.Errorf("%s has the option Coalesce: use Overlap(OverlapSkip)", d.typeName)
	}
	n, err := c.toNew(d)
	return store.Submission{Tasks: []task.New{n}}, err
}

func (j *Job) scheduled(c *Client) (store.Submission, error) {
	return j.submission(c.ids, c.toNew, new(submitSettings))
}

// declared returns the schedules of the configuration.
func (cfg *Config) declared(c *Client) (list []engine.Declared, problems []error) {
	seen := make(map[string]bool, len(cfg.Schedules))
	if cfg.ProgramVersion < 0 {
		problems = append(problems, errors.New("ProgramVersion is negative"))
	}
	if len(cfg.Schedules) > 0 && !c.store.Capabilities().Has(store.CanSchedule) {
		problems = append(problems, fmt.Errorf("%s: %w", "Schedules", store.Require(c.store, store.CanSchedule)))
	}
	for i := range cfg.Schedules {
		s := &cfg.Schedules[i]
		rule, work, err := s.stored(c)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: %w", fmt.Sprintf("Schedules[%d]", i), err))
		case seen[s.name]:
			problems = append(problems, fmt.Errorf("two Schedules are named %q: give each its own name", s.name))
		}
		seen[s.name] = true
		rule.Program, rule.CodeVersion = cfg.Program, cfg.ProgramVersion
		list = append(list, engine.Declared{Name: s.name, Rule: rule, Work: work})
	}
	return list, problems
}
