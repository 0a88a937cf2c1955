package store

// Scrubbed is what Scrub did.
type Scrubbed struct {
	Done  bool  // false: there was nothing to do
	Bytes int64 // size of the file that was written anew
}
