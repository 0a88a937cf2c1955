package rules

// KeyHasRoom reports whether one more task may run under a concurrency key that
// so many hold, of a limit. The limit of a key that no task holds is not known:
// it comes with the next claim.
func KeyHasRoom(held, limit int) bool { return held == 0 || held < limit }

// KeyWakes returns how many waiters of a key are moved to dispatch: as many as
// could run beside the tasks that hold it and the rows that are due already.
func KeyWakes(held, due, limit int) int { return max(0, limit-held-due) }
