package store

// Scrubbed is the result of Scrub.
type Scrubbed struct {
	Done  bool  // false: no scrub was necessary
	Bytes int64 // size of the rewritten file
}
