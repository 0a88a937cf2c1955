package store

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// Data reads and rewrites stored data: blobs, values, task types, and all rows for checks.
type Data interface {
	// Blobs (CanListBlobs) returns blobs by ID with their reference counts. A page shorter than the
	// filter's Limit is the last.
	Blobs(ctx context.Context, ns string, f BlobFilter) ([]BlobUse, error)

	// Artifact (CanListBlobs) returns an artifact by its ID, the oldest if several tasks have it
	// (RerunTask). Error: ErrNotFound.
	Artifact(ctx context.Context, ns string, id task.ID) (task.Artifact, error)

	// RewriteValues (CanRewriteValues) reads a page of stored values in place order and passes it to
	// fn, outside any transaction. One transaction then applies the swaps that fn returns and changes
	// nothing else in their rows. A swap has no effect if the value has changed or is deleted.
	// RewriteValues returns the number of applied swaps and the cursor of the next page, "" at the
	// end.
	//
	// It reads at most limit rows (0: DefaultLimit, at most MaxLimit). A row may have no value or
	// several, so a page may be empty before the end. Values stored concurrently may be missed. An
	// error of fn is returned unchanged, and nothing is swapped. Error: ErrBadCursor.
	RewriteValues(ctx context.Context, ns, after string, limit int, fn RewriteFunc) (swapped int, next string, err error)

	// Types (CanKeepTypes) returns the announced types with these names, or all types if names is
	// empty, by name. Unknown names are left out.
	Types(ctx context.Context, ns string, names ...string) ([]AnnouncedType, error)

	// Snapshot returns every row of the namespace as one consistent view,
	// for Check and for tests that compare stores.
	Snapshot(ctx context.Context, ns string) (*Snapshot, error)

	// Scan (CanScan) calls fn with each part of a namespace in turn, and stops at its first error. A
	// check of a large store thus needs no long snapshot and little memory. Each part is consistent in
	// itself; writes may happen between parts. No transaction is open while fn runs.
	Scan(ctx context.Context, ns string, fn func(*Part) error) error

	// Scrub (CanScrub: for stores that keep copies of erased bytes in unused parts of their files)
	// completes ForgetTask in a namespace, and removes erased bytes of every namespace from the
	// store's files. It does nothing if no task was forgotten since its last success. Others may have
	// to wait meanwhile. Errors: ErrBusy (a reader holds an old snapshot; call it again), ErrFull.
	Scrub(ctx context.Context, ns string) (Scrubbed, error)
}
