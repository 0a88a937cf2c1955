// Package sqlite is the embedded store: one SQLite file, or memory, and no server. It is
// written entirely in Go and also serves the browser.
//
// Invariants:
//
//   - One connection writes, for all callers of the process. Their operations share
//     transactions (group commit), each in a savepoint. No caller's context ever reaches
//     a writing statement.
//   - Readers have their own connections and read short snapshots concurrently with the
//     writer.
//   - Safety never depends on cached state (which lanes have rows, the number of running
//     tasks of a claim): it only saves work.
//   - No statement relies on a pragma of its connection.
//   - Every statement on a table of ours compares or sets its namespace, and finds its
//     rows by a key or an index (statements_test.go).
//
// Where to look:
//
//   - The verbs of the port, in SQL: package internal/sqlstore. Their database-specific
//     part: database.go.
//   - The schema: migrations/*.sql; 0001_init.sql is frozen (frozen_test.go).
//   - Commits, waiting claims, external writes, crashes: internal/commit, whose package
//     comment is the overview. Connections and error codes: internal/conn. Statements:
//     package internal/sqlstmt. Lanes with due rows: package internal/lane.
//   - Transactions of users: userdb.go (the pool), intx.go (enqueues in them),
//     steptx.go (steps), interrupt.go (their contexts).
//   - Open, Close and options: open.go, options.go. Schema versions and Ready:
//     migrate.go. Errors: errors.go. Notifications: notify.go. The locks that prove
//     workers dead: workerlock.go, package internal/workerlock. The file and its name:
//     file*.go. The clock stored in it: clock.go. Warnings: warn.go.
//
// Several processes may share a file. On Linux (and macOS, where it is untested) they take
// turns to write, in the order of their requests, by the file <database>.workers/turns, which
// the first worker creates (ADR 0054). Other programs that write to the file take no turns.
// While one of them has an open transaction, every process waits. If it writes constantly,
// with pauses of less than a few milliseconds, calls fail with ErrBusy after BusyTimeout. Such
// a program should write in short transactions, or through DB.
//
// Opening the same file with another SQLite library inside this process is unsafe. POSIX locks
// belong to the process, so that closing one of our connections drops that library's locks.
// Use DB.
//
// The package does not replicate, does not back up by itself, and does not work on network
// file systems without locks.
package sqlite
