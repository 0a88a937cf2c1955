package rules

// ClaimLooks is how many due rows a claim of up to limit tasks looks at: those
// that it takes, moves to the waiters of a concurrency key, or leaves because
// they may not run. The caller asks again for the rest, so that one claim does
// not hold up a store by what is due.
func ClaimLooks(limit int) int { return 4*limit + 256 }
