package wire

import (
	"net/http"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// Kind is one type of problem.
type Kind struct {
	Sentinel error  // nil: a problem of HTTP alone
	Name     string // the end of its type
	Status   int
	Title    string
	Retry    int // seconds after which to try again; 0: that is not said
}

// TimedOut names the problem of an answer that took too long: the request may have been done.
const TimedOut = "timed-out"

// Precondition is the problem of an If-Match that does not hold.
var Precondition = Kind{store.ErrChanged, "precondition-failed", http.StatusPreconditionFailed, "It has changed since it was read.", 0}

// Kinds returns the problems of errors. Of an error that is several of them the first one
// counts.
func Kinds() []Kind { return slices.Clone(kinds) }

var kinds = []Kind{
	{weaver.ErrInvalidSchedule, "invalid-schedule", 422, "The schedule has mistakes.", 0},
	{weaver.ErrInvalidJob, "invalid-job", 422, "The job has mistakes.", 0},
	{weaver.ErrInvalidOption, "invalid-option", 422, "An option has an invalid value.", 0},
	{weaver.ErrTooLarge, "payload-too-large", 413, "A value is over the limit.", 0},
	{weaver.ErrInvalidInput, "invalid-input", 422, "The input was refused.", 0},
	{ops.ErrInvalidQuery, "invalid-query", 400, "The query cannot be read.", 0},
	{store.ErrStatsQuery, "invalid-stats-query", 400, "The statistics query is invalid.", 0},
	{store.ErrBadCursor, "bad-cursor", 400, "The cursor did not come from a list.", 0},
	{weaver.ErrNotFound, "not-found", 404, "It does not exist.", 0},
	{weaver.ErrNoSuchNode, "no-such-node", 404, "The job has no task of this name.", 0},
	{weaver.ErrNoSuchStep, "no-such-step", 404, "The task recorded no such step.", 0},
	{weaver.ErrNoSuchNeed, "no-such-need", 404, "The task has no such need.", 0},
	{weaver.ErrForgotten, "forgotten", 410, "It was erased.", 0},
	{weaver.ErrValuesDropped, "values-dropped", 410, "A retention rule removed it.", 0},
	{store.ErrBlobGone, "blob-gone", 410, "The bytes were deleted.", 0},
	{store.ErrChanged, "changed", 409, "It has changed meanwhile.", 0},
	{weaver.ErrConflict, "conflict", 409, "It conflicts with the recorded state.", 0},
	{weaver.ErrState, "state", 409, "The state does not allow it.", 0},
	{store.ErrRefused, "refused", 422, "The store cannot keep this.", 0},
	{weaver.ErrQueueFull, "queue-full", 429, "The queue has as many waiting tasks as its limit allows.", 5},
	{store.ErrLimit, "limit", 409, "A limit is reached.", 0},
	{weaver.ErrBlocked, "blocked", 409, "The task is blocked.", 0},
	{weaver.ErrNotSucceeded, "not-succeeded", 409, "The task has not succeeded.", 0},
	{weaver.ErrWrongType, "wrong-type", 409, "The task is of another type.", 0},
	{store.ErrNoFeed, "no-events", 409, "No events are kept.", 0},
	{store.ErrUnknown, "unknown-outcome", 503, "It is not known whether it was done.", 1},
	{store.ErrBusy, "store-busy", 503, "The store is locked by another writer.", 1},
	{store.ErrFull, "store-full", 507, "No space is left for the store.", 60},
	{store.ErrReadOnly, "store-read-only", 503, "The store cannot be written.", 60},
	{store.ErrNotMigrated, "store-not-migrated", 503, "The store's schema is not migrated.", 10},
	{store.ErrNewerSchema, "store-newer-schema", 503, "The store's schema is newer than this server.", 60},
	{store.ErrNotDatabase, "store-not-a-database", 503, "The store is not a database.", 60},
	{store.ErrForeignDatabase, "store-foreign", 503, "The database holds other tables.", 60},
	{store.ErrUnavailable, "store-unavailable", 503, "The store cannot be reached.", 2},
	{store.ErrClosed, "store-closed", 503, "The store is closed.", 2},
	{blob.ErrNoBucket, "no-bucket", 503, "The value is in a bucket, and this server has no bucket.", 0},
	{blob.ErrCorrupt, "bytes-changed", 500, "The stored bytes have changed since they were put.", 0},
	{store.ErrOtherBucket, "other-bucket", 503, "The value is in another bucket.", 0},
	{store.ErrRestartTx, "restart-transaction", 503, "The transaction must be restarted.", 1},
}
