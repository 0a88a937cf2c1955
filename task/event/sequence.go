package event

// A sequence number has the epoch of a lease above the place of an event under it, so
// that the events of a task are ordered without a counter in the store: later leases
// have higher epochs, and the holder of a lease counts its own events. Numbers are
// left out, and a task's next number cannot be foretold.
const (
	epochSpan    = 1 << 24        // numbers of one epoch
	withoutLease = epochSpan >> 1 // the first one of writers that do not hold the lease
)

// Sequence returns the number of the n-th event (1, 2, …) that the holder of a lease
// emits, by the lease's epoch. The last number of the holder repeats.
func Sequence(epoch int64, n int) int64 {
	return epoch*epochSpan + int64(min(max(n, 0), withoutLease-1))
}

// FirstSequence is the number of task.started under the lease of an epoch.
func FirstSequence(epoch int64) int64 { return Sequence(epoch, 1) }

// LastSequence is the number of the event with which the holder of a lease ends the
// attempt: it comes after its others, however many there are.
func LastSequence(epoch int64) int64 { return Sequence(epoch, withoutLease) }

// EpochOf returns the epoch that a number lies in.
func EpochOf(sequence int64) int64 { return sequence / epochSpan }

// SequenceWithoutLease is [Sequence] for the n-th event (0, 1, …) of a process that
// does not hold the lease of that epoch: it comes after those of the holder.
func SequenceWithoutLease(epoch int64, n int) int64 {
	return epoch*epochSpan + int64(min(withoutLease+max(n, 0), epochSpan-1))
}
