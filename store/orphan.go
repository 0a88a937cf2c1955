package store

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// OrphanReader is implemented by stores that see that the process of a worker
// is dead before its leases end.
type OrphanReader interface {
	// Orphans returns which of the named tasks run under a lease of a worker
	// whose process is known to be dead, in the order asked. They go on when any
	// worker reaps (Reap takes such leases at once). A task that is not named may
	// be an orphan all the same: there is not always a proof.
	//
	// It is a read: it writes nothing, waits for no writer, and changes neither
	// what a reaper that runs at the same time finds nor whether a worker can join.
	Orphans(ctx context.Context, ns string, ids ...task.ID) ([]task.ID, error)
}
