package rules

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Texts that stand in an index or a key have one limit (task.MaxKey) on every store,
// whatever its own is: a task that one store takes is not refused by another one.

// CheckEnqueue refuses a submission with a text that a store cannot index:
// [store.ErrRefused].
func CheckEnqueue(sub *store.Submission) error {
	if j := sub.Job; j != nil {
		if err := refuseKeys("job", text{"its name", j.Name}, text{"its idempotency key", j.IdempotencyKey}); err != nil {
			return err
		}
	}
	return checkNew(sub.Tasks)
}

func checkNew(tasks []task.New) error {
	for i := range tasks {
		n := &tasks[i]
		if err := checkKeys(n); err != nil {
			return err
		}
		for k, v := range n.Labels {
			if err := refuseKeys("task", text{"the key of a label", k}, text{"the value of a label", v}); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKeys refuses the texts of a new task but its labels.
func checkKeys(n *task.New) error {
	queue := strings.TrimPrefix(n.Queue, task.RepairQueue("")) // before the name of a type
	return refuseKeys("task", text{"its type", n.Type}, text{"its queue", queue},
		text{"its idempotency key", n.IdempotencyKey}, text{"its concurrency key", n.ConcurrencyKey})
}

// text is a text with its name.
type text struct{ name, text string }

// refuseKeys refuses texts that a store cannot index.
func refuseKeys(of string, texts ...text) error {
	for _, t := range texts {
		if err := task.CheckKey(t.name, t.text); err != nil {
			return refuseForGood(fmt.Errorf("%s: %w", of, err))
		}
	}
	return nil
}

// refuseForGood makes an error one of what a repeat cannot change; nil stays nil.
func refuseForGood(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrRefused, err)
}

// CheckRecord refuses a record that no engine sends, and one with a text that a store
// cannot index: [store.ErrRefused].
func CheckRecord(rec *store.Record) error {
	if err := checkRecord(rec); err != nil {
		return refuseForGood(err)
	}
	if s := rec.Step; s != nil {
		if err := refuseKeys("record of a step", text{"its name", s.Name}, text{"its signal", s.Signal}); err != nil {
			return err
		}
	}
	if c := rec.Checkpoint; c != nil {
		if err := refuseKeys("record of a checkpoint", text{"its name", c.Name}); err != nil {
			return err
		}
	}
	return checkNew(rec.Tasks)
}

// CheckFinish refuses what no engine reports: an outcome that only stores record, a
// failure without a decision, a decision that stores cannot carry out. It refuses
// children with a text that a store cannot index. Both are [store.ErrRefused].
func CheckFinish(f *store.Finish) error {
	if err := checkFinish(f); err != nil {
		return refuseForGood(err)
	}
	return checkNew(f.Children)
}

// CheckCommand refuses a command with a text that a store cannot index:
// [store.ErrRefused].
func CheckCommand(cmd store.Command) error {
	switch cmd := cmd.(type) {
	case store.SendSignal:
		return refuseKeys("signal", text{"its name", cmd.Name}, text{"its key", cmd.Key})
	case store.RerunTask: // its labels are those of a task that is stored, or options were given for them
		return checkKeys(&cmd.New)
	case store.PauseType:
		return refuseKeys("pause", text{"the task type", cmd.Type})
	case store.ResumeType:
		return refuseKeys("resume", text{"the task type", cmd.Type})
	case store.PauseQueue:
		return refuseKeys("pause", text{"the queue", strings.TrimPrefix(cmd.Queue, task.RepairQueue(""))})
	case store.ResumeQueue:
		return refuseKeys("resume", text{"the queue", strings.TrimPrefix(cmd.Queue, task.RepairQueue(""))})
	}
	return nil
}
