package event

// A sequence number combines the epoch of a lease (high part) with the position of an event under that lease (low
// part). It orders the events of a task without a counter in the store: later leases have higher epochs, and the
// holder of a lease counts its own events. Numbers have gaps, and the next number of a task is not predictable.
const (
	epochSpan    = 1 << 24        // numbers per epoch
	withoutLease = epochSpan >> 1 // the first number for writers without the lease
)

// Sequence returns the number of the n-th event (1, 2, …) emitted by the holder of a lease of that epoch. Beyond the
// holder's range it repeats the last number.
func Sequence(epoch int64, n int) int64 {
	return epoch*epochSpan + int64(min(max(n, 0), withoutLease-1))
}

// FirstSequence returns the number of task.started under a lease of that epoch.
func FirstSequence(epoch int64) int64 { return Sequence(epoch, 1) }

// LastSequence returns the number of the event that ends the attempt. It follows all other events of the holder.
func LastSequence(epoch int64) int64 { return Sequence(epoch, withoutLease) }

// EpochOf returns the epoch of a sequence number.
func EpochOf(sequence int64) int64 { return sequence / epochSpan }

// SequenceWithoutLease is [Sequence] for the n-th event (0, 1, …) of a process that does not hold the lease of that
// epoch. Its numbers follow those of the holder.
func SequenceWithoutLease(epoch int64, n int) int64 {
	return epoch*epochSpan + int64(min(withoutLease+max(n, 0), epochSpan-1))
}
