// Package commit is the group commit: one connection writes for all callers of
// a process, and each transaction of it carries the operations of many
// callers.
//
// # Why
//
// SQLite has one writer per file, and a commit that waits for the disk costs
// as much as a hundred small operations. So callers hand their operations to a
// [Writer], which commits together what came while the previous group was
// being committed. Without load a group is one operation and nothing waits.
//
// # Leader
//
// There is no writer goroutine. The queue (package internal/batch) makes one
// of the waiting callers the leader; its goroutine runs one group after the
// other until its own operation is done, and then hands the lead to the next
// caller. Only the leader touches the connection and the caches kept here, so
// neither needs a lock. The leader of a group does, in this order:
//
//	turn        waits for the process's turn to write (see "Turns")
//	begin       BEGIN IMMEDIATE, which waits for other processes; notes a
//	            long wait ([Writer.Stalled]), and compares data_version
//	take        takes the group from the queue: only now, so that a heartbeat
//	            that came during the wait is in it, and first
//	run         runs each operation in a savepoint of its own
//	piggyback   runs waiting claims behind them, if one made a task due
//	commit      COMMIT, which waits for the disk
//	apply       applies the operations' effects: caches, then notifications
//	deliver     wakes the callers, then the waiting claims that got tasks
//	checkpoint  copies the log into the database when it is long; one that
//	            became very long is copied beside the writer (checkpoint.go)
//
// # Order within a group, and waiting claims
//
// Urgent operations (heartbeats) come before all others of the queue, so a
// heartbeat waits for one group and one transaction of another connection at
// most.
//
// A claim that found nothing may wait ([Writer.Wait]). When an operation makes
// a task due, the waiting claims of its namespace run in the same transaction:
// the task is stored and leased by one commit instead of two. A waiting claim
// never fails the group. One that gets nothing waits on; one that fails is
// undone and waits on, and its caller asks again by itself.
//
// # What is done twice, and why that is safe
//
//   - An operation that fails is undone to its savepoint. The others of its
//     group are committed; it is not run again.
//   - An error that ends the whole transaction (an interrupt, a full disk, an
//     I/O error, a failed COMMIT) does not name the operation at fault, and SQLite
//     then is in autocommit mode, where each further statement would commit by
//     itself. The group stops at once, and every operation of it runs again,
//     in a transaction of its own: those that fail again get the error.
//   - When the waiting claims lose the transaction of a single operation,
//     that operation runs once more, without them.
//
// Running twice is safe because nothing of the first run is in the database
// (the transaction is gone), and because an operation is a pure function of
// its transaction: it sets all of its results each time, and everything else
// that follows from it stands in its [Effects], which are applied after a
// successful commit. What is remembered before it is harmless when the
// transaction is lost: a lane that may have due rows and has none, a generation
// of the same transaction, a clock that was kept too early. A COMMIT that
// reports an error was rolled back in this process; after a failed sync the
// disk may have it all the same, and a crash right then brings it back. That,
// and a commit whose answer was lost, is known to the caller's own idempotency
// (lease, step name, idempotency key), not here.
//
// # Where a crash leaves what
//
//   - Before COMMIT returns: nothing was acknowledged. The log's next reader
//     drops what has no commit mark; either all of the group is there or
//     nothing.
//   - After COMMIT, before callers are woken: the group is in the database and
//     no caller knows. Each asks again, and its idempotency answers.
//   - The memory kept here (claims, lanes, generations) is lost, and read
//     again or rebuilt. Safety never rests on it.
//   - A panic in an operation becomes that operation's error. A panic around
//     COMMIT becomes the error of the group and of the claims in it; the
//     transaction is rolled back and the turn is given back.
//
// # Other writers
//
// Connections of other processes and of other DBs on the file commit too.
// data_version changes when they do, which each group compares ([Writer.Peek]
// does so between groups): remembered lanes and generations are then read
// again, and listeners are notified of an external write.
//
// # Turns
//
// Transactions of this process on other connections (those of the user's pool,
// StepTx among them) take the turn ([Writer.Turn]) for their duration instead of
// joining a group: user code must not run with the lead, for its panic or its
// silence would be every caller's. The turn is a fair queue, so nothing of this
// process polls SQLite's lock; see turns for its order. A transaction that is
// left open is named in the error of everyone who waits for it.
package commit
