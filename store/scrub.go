package store

import "context"

// Scrubber is implemented by stores that keep copies of erased bytes in unused parts of
// their files.
type Scrubber interface {
	// Scrub ends what ForgetTask began in a namespace, and removes what was erased, in
	// whatever namespace, from every part of the store's files. It does nothing when
	// nothing was forgotten since it last succeeded. Others may have to wait meanwhile.
	// Errors: ErrBusy (a reader keeps an old snapshot; call it again), ErrFull.
	Scrub(ctx context.Context, ns string) (Scrubbed, error)
}

// Scrubbed is what Scrub did.
type Scrubbed struct {
	Done  bool  // false: there was nothing to do
	Bytes int64 // size of the file that was written anew
}
