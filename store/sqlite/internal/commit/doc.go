// Package commit is the group commit: one connection writes for all callers of a process, and
// each of its transactions carries the operations of many callers.
//
// # Why
//
// SQLite has one writer for each file, and a commit that waits for the disk costs as much as a
// hundred small operations. Callers therefore hand their operations to a [Writer], which
// commits together the operations that arrived during the previous commit. Without load a
// group is one operation and waits for nothing.
//
// # Leader
//
// There is no writer goroutine. The queue (package internal/batch) makes one of the waiting
// callers the leader. Its goroutine runs one group after the other until its own operation is
// done, and then hands the lead to the next caller. Only the leader touches the connection and
// the caches of this package, so neither needs a lock. For each group the leader runs these
// steps in order:
//
//	turn        waits for the process's turn to write (see "Turns")
//	begin       BEGIN IMMEDIATE, which waits for other processes; records a
//	            long wait ([Writer.Stalled]), and compares data_version
//	take        takes the group from the queue: only now, so that a heartbeat
//	            that came during the wait is in it, and first
//	run         runs each operation in its own savepoint
//	piggyback   runs waiting claims after them, if one made a task due
//	commit      COMMIT, which waits for the disk
//	apply       applies the operations' effects: caches, then notifications
//	deliver     wakes the callers, then the waiting claims that got tasks
//	checkpoint  copies the log into the database when it is long; a very
//	            long log is copied concurrently with the writer (checkpoint.go)
//
// # Order within a group, and waiting claims
//
// Urgent operations (heartbeats) come before all others of the queue. A heartbeat therefore
// waits for at most one group and one transaction of another connection.
//
// A claim that found nothing may wait ([Writer.Wait]). When an operation makes a task due, the
// waiting claims of its namespace run in the same transaction: one commit instead of two
// stores and leases the task. A waiting claim never fails the group. A claim that gets nothing
// continues to wait. A claim that fails is rolled back and continues to wait, and its caller
// asks again by itself.
//
// # What runs twice, and why that is safe
//
//   - An operation that fails is rolled back to its savepoint. The others of its group are
//     committed; the failed operation does not run again.
//   - An error that ends the whole transaction (an interrupt, a full disk, an I/O error, a
//     failed COMMIT) does not identify the failed operation. SQLite is then in autocommit
//     mode, where each further statement would commit by itself. The group stops at once,
//     and each of its operations runs again in its own transaction. Operations that fail
//     again get the error.
//   - If the waiting claims lose the transaction of a single operation, that operation runs
//     once more, without them.
//
// Running twice is safe because nothing of the first run is in the database (the transaction
// was rolled back), and because an operation is a pure function of its transaction. It sets
// all of its results each time, and its other consequences are in its [Effects], which are
// applied after a successful commit. State cached before the commit is harmless if the
// transaction is lost: a lane that seems to have due rows, a generation of the same
// transaction, a clock that was stored too early.
//
// A COMMIT that reports an error was rolled back in this process. After a failed sync the disk
// may have the commit nevertheless, and a crash at this moment restores it. The caller's own
// idempotency (lease, step name, idempotency key) covers this case and a commit whose answer
// was lost.
//
// # State after a crash
//
//   - Before COMMIT returns: nothing was acknowledged. The log's next reader drops
//     everything without a commit mark: either the whole group is stored or nothing.
//   - After COMMIT, before callers are woken: the group is stored and no caller knows. Each
//     asks again, and its idempotency answers.
//   - The caches of this package (claims, lanes, generations) are lost, and read again or
//     rebuilt. Safety never depends on them.
//   - A panic in an operation becomes that operation's error. A panic around COMMIT becomes
//     the error of the group and of the claims in it; the transaction is rolled back and the
//     turn is released.
//
// # Other writers
//
// Connections of other processes and of other DBs on the file commit too. Their commits change
// data_version, which each group compares ([Writer.Peek] does so between groups). Cached lanes
// and generations are then read again, and listeners are notified of an external write.
//
// # Turns
//
// Transactions of this process on other connections (those of the user's pool, including
// StepTx) take the turn ([Writer.Turn]) for their duration instead of joining a group. User
// code must not run with the lead, because its panic or its hang would affect every caller.
// The turn is a fair queue, so nothing of this process polls SQLite's lock; see turns for its
// order. The error of every waiter names a transaction that was left open.
package commit
