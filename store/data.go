package store

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// Data is what is stored, as it is stored: blobs, values, task types, and all rows for
// checks.
type Data interface {
	// Blobs (CanListBlobs) returns blobs by ID, with what refers to them. Fewer than
	// the filter's Limit: there are no more.
	Blobs(ctx context.Context, ns string, f BlobFilter) ([]BlobUse, error)

	// Artifact (CanListBlobs) returns an artifact by its ID, the oldest if several
	// tasks have it (RerunTask); ErrNotFound.
	Artifact(ctx context.Context, ns string, id task.ID) (task.Artifact, error)

	// RewriteValues (CanRewriteValues) reads a page of stored values in the order of
	// their places and hands it to fn, outside of any transaction. It then makes the
	// swaps that fn returns, in one transaction that changes nothing else of their rows:
	// the swap of a value that is no longer what was read, or is gone, does nothing. It
	// returns how many were made, and the cursor of the next page, "" at the end.
	//
	// It reads limit rows at most (0: DefaultLimit, at most MaxLimit), of which some may
	// have no value and some several: a page may be empty and have a cursor. Values that
	// are stored meanwhile may be left out. An error of fn is returned as it is, and
	// nothing is swapped. Errors: ErrBadCursor.
	RewriteValues(ctx context.Context, ns, after string, limit int, fn RewriteFunc) (swapped int, next string, err error)

	// Types (CanKeepTypes) returns the announced types of these names, or all without
	// one, by name. A name that was not announced is left out.
	Types(ctx context.Context, ns string, names ...string) ([]AnnouncedType, error)

	// Snapshot returns every row of the namespace as one consistent view,
	// for Check and for tests that compare stores.
	Snapshot(ctx context.Context, ns string) (*Snapshot, error)

	// Scan (CanScan) calls fn with the parts of a namespace, one after the other, and
	// returns its first error, so that a check of a large store neither holds a snapshot
	// for long nor needs much memory. Each part is consistent in itself; between two of
	// them others write. No transaction is open while fn runs.
	Scan(ctx context.Context, ns string, fn func(*Part) error) error

	// Scrub (CanScrub: of stores that keep copies of erased bytes in unused parts of
	// their files) ends what ForgetTask began in a namespace, and removes what was
	// erased, in whatever namespace, from every part of the store's files. It does
	// nothing when nothing was forgotten since it last succeeded. Others may have to
	// wait meanwhile. Errors: ErrBusy (a reader keeps an old snapshot; call it again),
	// ErrFull.
	Scrub(ctx context.Context, ns string) (Scrubbed, error)
}
