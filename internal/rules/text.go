package rules

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Texts in an index or a key have one limit (task.MaxKey) on every store, regardless of the
// database's own limit. Every store accepts the same tasks.

// CheckEnqueue refuses ([store.ErrRefused]) a submission with a text that a store cannot
// index.
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

// checkKeys refuses the texts of a new task, except its labels, that a store cannot index.
func checkKeys(n *task.New) error {
	queue := strings.TrimPrefix(n.Queue, task.RepairQueue("")) // the prefix of a type's name
	if r := n.RateLimit; r.Key != "" {
		if err := r.Check(); err != nil {
			return refuseForGood(fmt.Errorf("task: rate limit %q: %w", r.Key, err))
		}
	}
	return refuseKeys("task", text{"its type", n.Type}, text{"its queue", queue},
		text{"its idempotency key", n.IdempotencyKey}, text{"its concurrency key", n.ConcurrencyKey},
		text{"the label by which it takes turns", n.FairBy}, text{"the key of its rate limit", n.RateLimit.Key})
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

// refuseForGood wraps an error that a repetition cannot mend in [store.ErrRefused]. nil stays
// nil.
func refuseForGood(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrRefused, err)
}

// CheckRecord refuses ([store.ErrRefused]) a malformed record, and a record with a text that a
// store cannot index.
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

// CheckFinish refuses ([store.ErrRefused]) a malformed finish: an outcome that only stores
// record, a failure without a decision, or a decision that stores cannot carry out. It also
// refuses children with a text that a store cannot index.
func CheckFinish(f *store.Finish) error {
	if err := checkFinish(f); err != nil {
		return refuseForGood(err)
	}
	return checkNew(f.Children)
}

// CheckCommand refuses ([store.ErrRefused]) a command with a text that a store cannot index.
func CheckCommand(cmd store.Command) error {
	switch cmd := cmd.(type) {
	case store.SendSignal:
		return refuseKeys("signal", text{"its name", cmd.Name}, text{"its key", cmd.Key})
	case store.RerunTask: // its labels come from a stored task or were checked with its options
		return checkKeys(&cmd.New)
	case store.PauseType:
		return refuseKeys("pause", text{"the task type", cmd.Type})
	case store.ResumeType:
		return refuseKeys("resume", text{"the task type", cmd.Type})
	case store.PauseQueue:
		return refuseKeys("pause", text{"the queue", strings.TrimPrefix(cmd.Queue, task.RepairQueue(""))})
	case store.ResumeQueue:
		return refuseKeys("resume", text{"the queue", strings.TrimPrefix(cmd.Queue, task.RepairQueue(""))})
	case store.WriteSchedule:
		return checkSchedule(&cmd)
	case store.KeepFeed:
		return CheckFeedKeep(cmd.Keep)
	}
	return nil
}
