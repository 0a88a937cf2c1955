package rules

// MaxWakes is the maximum number of waiters that one wake of a key moves because the key has
// room. It also bounds the lanes (queue and task type) for which one wake moves a waiter
// because the lane has nothing due.
const MaxWakes = 1000

// KeyHasRoom reports whether one more task may run under a concurrency key with this number of
// holders. The limit of a key without holders is unknown until the next claim.
func KeyHasRoom(held, limit int) bool { return held == 0 || held < limit }

// KeyWakes returns the number of a key's waiters to move to dispatch, the oldest of all lanes
// first. It fills the room of the key, less the rows that are due already. At most MaxWakes
// rows are due at once, because their claims wake the key again. Due rows and waiters of
// paused queues do not count. A caller counts at most KeyWakes(held, 0, limit) due rows.
func KeyWakes(held, due, limit int) int { return max(0, min(limit-held, MaxWakes)-due) }

// LaneWakes reports whether the oldest waiter of a lane is moved to dispatch, regardless of
// other lanes. While the key has room, each lane with waiters has a due row. Otherwise due
// rows of a type without workers, or of a paused queue, would block every other lane.
func LaneWakes(held, limit int, due bool) bool { return KeyHasRoom(held, limit) && !due }
