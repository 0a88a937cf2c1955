package rules

// MaxWakes is how many waiters one wake of a key moves because the key has
// room, and for how many lanes (queue and task type) it moves one because the
// lane has nothing due.
const MaxWakes = 1000

// KeyHasRoom reports whether one more task may run under a concurrency key that
// so many hold, of a limit. The limit of a key that no task holds is not known:
// it comes with the next claim.
func KeyHasRoom(held, limit int) bool { return held == 0 || held < limit }

// KeyWakes returns how many waiters of a key are moved to dispatch, the oldest
// of all lanes first: as many as could run beside the tasks that hold it and
// the rows that are due already, as long as fewer than MaxWakes rows are due:
// the claims of those wake the key again. Lanes of paused queues do not take
// part, neither with their due rows nor with their waiters. A caller counts no
// more due rows than KeyWakes(held, 0, limit).
func KeyWakes(held, due, limit int) int { return max(0, min(limit-held, MaxWakes)-due) }

// LaneWakes reports whether the oldest waiter of a lane is moved to dispatch,
// whatever is due in other lanes: while the key has room, each lane with
// waiters has a due row. Else the due rows of a type that no worker serves, or
// of a paused queue, would hold all others.
func LaneWakes(held, limit int, due bool) bool { return KeyHasRoom(held, limit) && !due }
