// Package store is Weaver's first port: the truth. Every state change of a
// task happens inside one transaction of a Store, and nothing outside it is
// ever read to decide one.
//
// A Store is five interfaces: [Core] (tasks, leases, attempts), [Flow] (jobs, needs,
// steps in a transaction), [Data] (blobs, values, rows as they are stored), [Ops]
// (commands, retention, schema, health) and [Observe] (what people see, and notices).
// All methods are there in every store; [Capabilities] says which of them work. The
// rules that the comments cite (R for leases, W for dispatch) are explained in
// docs/leases.md; package storetest is their executable form, and package memstore their
// smallest implementation. docs/new-store.md says what a new store consists of.
//
// What every method keeps:
//
//   - A method is one or several transactions; when it returns nil for an
//     element, that element is durable. When it returns an error for the
//     call, the outcome of the call is unknown unless the error says
//     otherwise, and the same call may be made again: Enqueue is idempotent
//     by task ID, Claim by lease ID (with Again), Finish and Record by their
//     content.
//   - Batches are not atomic across elements: losers drop out with their own
//     error, winners commit. Enqueue is the exception: all or nothing.
//   - Time is the store's clock, which goes back only if it was ahead of the
//     machine's by more than a day. Callers send
//     durations; the only instant a caller may send is a user's wish
//     (task.New.At, Step.WakeAt).
//   - Instants come back in UTC with microsecond precision.
//   - The context bounds waiting and reading. Once a write has joined a group
//     that is being committed, its caller's context no longer matters: it
//     gets ErrUnknown and the write may or may not have happened.
//   - All methods are safe for concurrent use.
package store

// Store is everything an engine and a client need. Namespaces separate environments: no
// method reads or writes outside the namespace it is given.
type Store interface {
	Core
	Flow
	Data
	Ops
	Observe
}
