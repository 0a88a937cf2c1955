// Package store is the port between Weaver and its database. Every state change of a task is one
// transaction of a Store, and only data read in that transaction decides it.
//
// A Store is five interfaces: [Core] (tasks, leases, attempts), [Flow] (jobs, needs, steps in a
// transaction), [Data] (blobs, values, stored rows), [Ops] (commands, retention, schema, health) and
// [Observe] (reads and notices). Every store has all methods; [Capabilities] lists the optional ones
// that work. docs/leases.md explains the rules that comments cite (R for leases, W for dispatch).
// Package storetest tests them, and package memstore is the smallest implementation. docs/new-store.md
// describes how to write a store.
//
// Every method keeps these rules:
//
//   - A method runs one or several transactions. When it returns nil for an
//     element, that element is durable. When it returns an error for the
//     call, the outcome of the call is unknown unless the error says
//     otherwise, and the same call may be repeated: Enqueue is idempotent
//     by task ID, Claim by lease ID (with Again), Finish and Record by
//     content.
//   - Batches are not atomic: each failed element returns its own
//     error, the others commit. Enqueue is the exception: all or nothing.
//   - Time is the store's clock, which goes back only if it was more than a
//     day ahead of the machine's. Callers send durations. The only instants
//     that a caller may send are a user's (task.New.At, Step.WakeAt).
//   - Returned instants are in UTC with microsecond precision.
//   - The context bounds waiting and reading. Once a write has joined a group
//     commit, a cancelled context returns ErrUnknown, and the write may or
//     may not have happened.
//   - All methods are safe for concurrent use.
package store

// Store is the storage that an engine and a client need. Namespaces separate environments: no method
// reads or writes outside the given namespace.
type Store interface {
	Core
	Flow
	Data
	Ops
	Observe
}
