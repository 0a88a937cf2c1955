package weaver

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/schedule"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// PlainSchedule is a Schedule as plain values, for packages that send it to another process.
type PlainSchedule struct {
	Name                   string
	Cron, Timezone         string
	Every, CatchUp, Jitter time.Duration // 0: not set
	NotBefore, NotAfter    time.Time
	Overlap                OverlapPolicy

	Job   *task.NewJob // nil: the work is Tasks[0]
	Tasks []task.New
}

// Plain returns the schedule as plain values; the tasks of a job have new IDs that their Needs refer
// to. It reports all mistakes at once: ErrInvalidSchedule.
func (s Schedule) Plain() (p PlainSchedule, err error) {
	if err := s.Err(); err != nil {
		return p, err
	}
	r := &s.rule
	p = PlainSchedule{
		Name: s.name, Cron: r.Cron, Timezone: r.Timezone, NotBefore: r.NotBefore, NotAfter: r.NotAfter, Overlap: r.Overlap,
		Every: time.Duration(r.Every), CatchUp: time.Duration(r.CatchUp), Jitter: time.Duration(r.Jitter),
	}
	switch work := s.work.(type) {
	case Draft:
		p.Tasks = make([]task.New, 1)
		p.Tasks[0], err = work.Task()
	case *Job:
		var job task.NewJob
		job, p.Tasks, err = work.Plain()
		p.Job = &job
	}
	if err != nil {
		return p, fmt.Errorf("%w %q: %w", ErrInvalidSchedule, s.name, err)
	}
	return p, nil
}

// SeenVersion makes PutSchedule change only the definition that was seen: if that is not version v
// (ScheduleInfo.Version) any more, nothing changes and the error is [store.ErrChanged]. 0: the schedule
// must not exist. Other verbs refuse it: ErrInvalidOption.
func SeenVersion(v int) OperateOption {
	return operateOption(func(s *operateSettings) { s.version = &v })
}

// seenVersion returns the error of SeenVersion.
func (s *operateSettings) seenVersion(name string, at *schedule.Schedule) error {
	switch {
	case s.version == nil:
		return nil
	case at == nil && *s.version != 0:
		return fmt.Errorf("schedule %s does not exist, and version %d of it was seen: %w", name, *s.version, store.ErrChanged)
	case at != nil && at.State.Version != *s.version:
		return fmt.Errorf("the definition of schedule %s is version %d, and not %d as seen: %w", name, at.State.Version, *s.version, store.ErrChanged)
	}
	return nil
}
