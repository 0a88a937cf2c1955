package rules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkEvents refuses more event rows than one transaction may write.
func checkEvents(l *task.Lease, rows []store.EventRow) error {
	if len(rows) > store.MaxEvents {
		return fmt.Errorf("report of task %v: %d event rows, want at most %d", l.Task, len(rows), store.MaxEvents)
	}
	return nil
}

// MergeEvents merges two lists of rows by their numbers, up to a limit.
func MergeEvents(a, b []store.EventRow, limit int) []store.EventRow {
	rows := append(a, b...)
	slices.SortFunc(rows, func(x, y store.EventRow) int { return cmp.Compare(x.Seq, y.Seq) })
	return rows[:min(len(rows), limit)]
}

// EventLimit returns the page size of a read of events.
func EventLimit(asked int) int {
	if asked <= 0 || asked > store.MaxEvents {
		return store.MaxEvents
	}
	return asked
}

// CheckFeedKeep refuses a retention below the minimum of a feed.
func CheckFeedKeep(keep time.Duration) error {
	if keep != 0 && keep < store.MinFeedKeep {
		return fmt.Errorf("a feed cannot keep events for %v: want %v or more, or 0 for no feed", keep, store.MinFeedKeep)
	}
	return nil
}

// FeedLimit returns the page size of a feed.
func FeedLimit(asked int) int {
	if asked <= 0 || asked > store.MaxFeedRows {
		return store.MaxFeedRows
	}
	return asked
}
