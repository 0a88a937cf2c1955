package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/goweaver/weaver/task"
)

// Capabilities is the set of optional features that a store supports. [Unsupported] implements the
// methods of the missing ones.
type Capabilities uint32

// The capabilities.
const (
	CanWait          Capabilities = 1 << iota // Claim waits for work (ClaimRequest.Wait)
	CanStepTx                                 // StepTx
	CanNotify                                 // Notify
	CanCountJobs                              // Overview counts the tasks of a job (OverviewJob)
	CanKeepEvents                             // Events
	CanKeepFeed                               // KeepFeed, Feed, and Collect of the feed
	CanKeepStats                              // WriteStats, ReadStats, and Collect of statistics
	CanKeepTypes                              // Types
	CanListBlobs                              // Blobs and Artifact
	CanRewriteValues                          // RewriteValues
	CanScan                                   // Scan
	CanScrub                                  // Scrub
	CanFindOrphans                            // Orphans
	CanPublish                                // Publish
	CanSchedule                               // Schedules, and the command WriteSchedule

	CanLimit // Limits, and the commands SetLimit and Rest

	AllCapabilities = 1<<iota - 1
)

// capabilityVerbs names the features for messages, in the order of the bits.
var capabilityVerbs = [...]string{
	"hold a claim until there is work", "run a step in its transaction", "notify of changes", "count the tasks of a job",
	"keep events", "keep a feed of events", "keep statistics", "keep descriptions of task types",
	"list blobs", "replace stored values", "show its rows in parts", "erase bytes from its files", "find dead processes",
	"list tasks whose hints are to be sent", "keep schedules", "keep limits",
}

// Has reports whether all of want are in the set.
func (c Capabilities) Has(want Capabilities) bool { return c&want == want }

// String returns the first capability of the set as a verb, for messages.
func (c Capabilities) String() string {
	if i := bits.TrailingZeros32(uint32(c)); i < len(capabilityVerbs) {
		return capabilityVerbs[i]
	}
	return "do nothing more"
}

// Require returns an error if the store lacks a capability, else nil. The error is ErrNoFeed for
// CanKeepFeed and [errors.ErrUnsupported] for every other capability.
func Require(s Store, want Capabilities) error {
	if s.Capabilities().Has(want) {
		return nil
	}
	return unsupported(want, fmt.Sprintf(" (%T)", s))
}

func unsupported(want Capabilities, which string) error {
	kind := errors.ErrUnsupported
	if want == CanKeepFeed {
		kind = ErrNoFeed
	}
	return fmt.Errorf("this store%s cannot %s: %w", which, want, kind)
}

// Unsupported implements the methods of a store that lacks every capability. A store embeds it and
// overrides the methods that it supports, so it also gets the methods of later versions of the port.
// Methods that return hints (Notify, Wake, Orphans, Warnings, Session) do nothing. Events and Types
// return no rows. Migrate does nothing. Every other method returns the error of Require.
type Unsupported struct{}

// Capabilities implements Core.
func (Unsupported) Capabilities() Capabilities { return 0 }

// StepTx implements Flow.
func (Unsupported) StepTx(context.Context, string, Record, time.Duration, func(context.Context, Tx) (json.RawMessage, error)) (RecordResult, error) {
	return RecordResult{}, unsupported(CanStepTx, "")
}

// Transient implements Flow.
func (Unsupported) Transient(error) bool { return false }

// Blobs implements Data.
func (Unsupported) Blobs(context.Context, string, BlobFilter) ([]BlobUse, error) {
	return nil, unsupported(CanListBlobs, "")
}

// Artifact implements Data.
func (Unsupported) Artifact(context.Context, string, task.ID) (task.Artifact, error) {
	return task.Artifact{}, unsupported(CanListBlobs, "")
}

// RewriteValues implements Data.
func (Unsupported) RewriteValues(context.Context, string, string, int, RewriteFunc) (int, string, error) {
	return 0, "", unsupported(CanRewriteValues, "")
}

// Scan implements Data.
func (Unsupported) Scan(context.Context, string, func(*Part) error) error {
	return unsupported(CanScan, "")
}

// Scrub implements Data.
func (Unsupported) Scrub(context.Context, string) (Scrubbed, error) {
	return Scrubbed{}, unsupported(CanScrub, "")
}

// Types implements Data.
func (Unsupported) Types(context.Context, string, ...string) ([]AnnouncedType, error) {
	return nil, nil
}

// Session implements Ops.
func (Unsupported) Session(string, WorkerID) (Session, bool) { return Session{}, false }

// Migrate implements Ops.
func (Unsupported) Migrate(context.Context) error { return nil }

// MigrationStatus implements Ops.
func (Unsupported) MigrationStatus(context.Context) ([]MigrationStatus, error) { return nil, nil }

// Warnings implements Ops.
func (Unsupported) Warnings(context.Context) []Warning { return nil }

// Publish implements Ops.
func (Unsupported) Publish(context.Context, string, PublishRequest) (PublishResult, error) {
	return PublishResult{}, unsupported(CanPublish, "")
}

// Schedules implements Observe.
func (Unsupported) Schedules(context.Context, string, ScheduleFilter) (SchedulePage, error) {
	return SchedulePage{}, unsupported(CanSchedule, "")
}

// Limits implements Observe.
func (Unsupported) Limits(context.Context, string, LimitFilter) (LimitPage, error) {
	return LimitPage{}, unsupported(CanSchedule, "")
}

// Orphans implements Observe.
func (Unsupported) Orphans(context.Context, string, ...task.ID) ([]task.ID, error) { return nil, nil }

// Events implements Observe.
func (Unsupported) Events(context.Context, string, task.ID, int64, int) ([]EventRow, error) {
	return nil, nil
}

// Feed implements Observe.
func (Unsupported) Feed(context.Context, string, FeedRequest) (FeedPage, error) {
	return FeedPage{}, unsupported(CanKeepFeed, "")
}

// WriteStats implements Observe.
func (Unsupported) WriteStats(context.Context, string, ...StatRow) error {
	return unsupported(CanKeepStats, "")
}

// ReadStats implements Observe.
func (Unsupported) ReadStats(context.Context, string, StatsQuery) (StatsPage, error) {
	return StatsPage{}, unsupported(CanKeepStats, "")
}

// Notify implements Observe.
func (Unsupported) Notify(string, func() []task.ID, func(Notice)) (stop func(), complete bool) {
	return func() {}, false
}

// Wake implements Observe.
func (Unsupported) Wake(string) {}
