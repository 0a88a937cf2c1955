package wire

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver"
)

// ScheduleDraft is a schedule to store, with cron or every, and with task or job.
type ScheduleDraft struct {
	VerbRequest
	Cron      string               `json:"cron,omitempty"`     // five fields, as 0 3 * * *, or a name such as @daily
	Timezone  string               `json:"timezone,omitempty"` // of cron, as Europe/Berlin. Default UTC
	Every     Span                 `json:"every,omitempty"`    // elapsed time between two times, in whole seconds
	NotBefore time.Time            `json:"not_before,omitzero"`
	NotAfter  time.Time            `json:"not_after,omitzero"`
	Overlap   weaver.OverlapPolicy `json:"overlap,omitempty"`  // while the last run has not ended: skip, queue, cancel_running or allow. Default skip
	CatchUp   Span                 `json:"catch_up,omitempty"` // how old the latest missed time may be to fire. Default 1h
	Jitter    Span                 `json:"jitter,omitempty"`   // maximum delay of each fire
	Task      *Draft               `json:"task,omitempty"`     // the task of each run
	Job       *JobDraft            `json:"job,omitempty"`      // the job of each run
}

// Schedule is a schedule with its next times, and what became of the last ones.
type Schedule struct {
	weaver.ScheduleInfo
	Upcoming []time.Time           `json:"upcoming"` // the next scheduled times; paused, they do not fire
	Fires    []weaver.ScheduleFire `json:"fires"`    // newest first
}

// BackfillRequest is a span of scheduled times to make up for.
type BackfillRequest struct {
	VerbRequest
	From   time.Time `json:"from"`
	To     time.Time `json:"to"` // not in the span
	DryRun bool      `json:"dry_run,omitempty"`
}

// VersionTag returns the ETag of the definition of a schedule.
func VersionTag(version int) string { return fmt.Sprintf(`"%d"`, version) }
