package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ScheduleTarget returns the target of the audit entries of a schedule.
func ScheduleTarget(name string) string { return "schedule/" + name }

// checkSchedule refuses ([store.ErrRefused]) a malformed write of a schedule.
func checkSchedule(cmd *store.WriteSchedule) error {
	if err := refuseKeys("schedule", text{"its name", cmd.Name}); err != nil {
		return err
	}
	switch {
	case cmd.Name == "":
		return refuseForGood(fmt.Errorf("schedule: it has no name"))
	case len(cmd.Fires) > store.MaxScheduleFires:
		return refuseForGood(fmt.Errorf("schedule %s: %d fires in one write; at most %d are allowed", cmd.Name, len(cmd.Fires), store.MaxScheduleFires))
	case cmd.Delete && (cmd.Revision == 0 || len(cmd.Fires) > 0):
		return refuseForGood(fmt.Errorf("schedule %s: its deletion needs a revision and no fires", cmd.Name))
	case !cmd.Delete && cmd.Revision == 0 && (cmd.Rule == nil || cmd.Work == nil || cmd.State == nil):
		return refuseForGood(fmt.Errorf("schedule %s: it needs a rule, its work and a state", cmd.Name))
	}
	for i := range cmd.Fires {
		f := &cmd.Fires[i]
		if f.At.IsZero() || f.Until.Before(f.At) || f.Count < 1 || i > 0 && !f.At.After(cmd.Fires[i-1].At) {
			return refuseForGood(fmt.Errorf("schedule %s: fire %d has no time, ends before it begins, has no count, or is not after the fire before it", cmd.Name, i))
		}
		if (f.Run != nil) != (f.Kind == store.FireFired) || f.Run != nil && len(f.Run.Tasks) == 0 {
			return refuseForGood(fmt.Errorf("schedule %s: fire %d of kind %q must have a run exactly if it fired", cmd.Name, i, f.Kind))
		}
		if f.Run != nil {
			if err := CheckEnqueue(f.Run); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckScheduleWrite returns the error of a write of a schedule whose row has a revision (0: it does
// not exist), at the store's time.
func CheckScheduleWrite(cmd *store.WriteSchedule, revision int64, now time.Time) error {
	switch {
	case revision == 0 && cmd.Revision != 0:
		return fmt.Errorf("schedule %s: %w", cmd.Name, store.ErrNotFound)
	case revision != cmd.Revision:
		return fmt.Errorf("schedule %s was changed by another program: its revision is %d, not %d: %w", cmd.Name, revision, cmd.Revision, store.ErrChanged)
	case now.Before(cmd.NotBefore):
		return fmt.Errorf("schedule %s is due in %s: %w", cmd.Name, cmd.NotBefore.Sub(now), store.ErrState)
	}
	return nil
}

// CheckFire returns ErrChanged if the time of a fire has fired before.
func CheckFire(name string, f *store.ScheduleFire, recorded store.FireKind) error {
	if recorded != store.FireFired {
		return nil
	}
	return fmt.Errorf("schedule %s: its time %s has fired before: %w", name, f.At.UTC().Format(time.RFC3339Nano), store.ErrChanged)
}

// RunOf returns the task or the job of a run, given the result of the first task of its submission.
func RunOf(sub *store.Submission, first store.Enqueued) (run, job task.ID) {
	switch {
	case sub.Job == nil:
		return first.ID, job
	case !first.Job.IsZero(): // the job existed
		return run, first.Job
	}
	return run, sub.Job.ID
}
