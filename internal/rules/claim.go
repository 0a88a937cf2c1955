package rules

// ClaimLooks returns the maximum number of due rows that a claim of limit tasks reads. The
// claim takes a row, moves it to the waiters of a concurrency key, or leaves it because it may
// not run. The caller claims again for the rest, so that one claim never holds the store for
// long.
func ClaimLooks(limit int) int { return 4*limit + 256 }

// PublishLooks is the maximum number of due rows of a lane that a publisher reads. A lane with
// more due rows needs no hints: its workers are busy, or claim its tasks directly.
const PublishLooks = 256
