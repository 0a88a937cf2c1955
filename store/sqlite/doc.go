// Package sqlite is the embedded store: one SQLite file, or memory, and no
// server. It is written in Go throughout and also serves the browser.
//
// What always holds:
//
//   - One connection writes, for all callers of the process: their operations
//     share transactions (group commit), each in a savepoint, and no caller's
//     context ever reaches a writing statement.
//   - Readers have their own connections and read short snapshots beside the
//     writer.
//   - Safety never rests on the knowledge kept in memory (which lanes have
//     rows, how many tasks of a claim still run): it only saves work.
//   - No statement relies on a pragma of its connection.
//   - Every statement that uses a table of ours compares or sets its namespace,
//     and finds its rows by a key or an index (statements_test.go).
//
// Where to find what:
//
//   - The verbs of the port, in SQL: package internal/sqlstore. What they need of
//     this database: database.go.
//   - The schema: migrations/*.sql; 0001_init.sql is frozen (frozen_test.go).
//   - Commits, waiting claims, external writes, crashes: internal/commit, whose
//     comment is the overview. Connections and error codes: internal/conn;
//     statements: package internal/sqlstmt. Which lanes have due rows: package internal/lane.
//   - Transactions of users: userdb.go (the pool), intx.go (enqueues in them),
//     steptx.go (steps), interrupt.go (their contexts).
//   - Open, Close and options: open.go, options.go; schema versions and Ready:
//     migrate.go; errors: errors.go; notifications: notify.go; the locks that
//     prove workers dead: workerlock.go, package internal/workerlock; the file and
//     its name: file*.go; the clock that is kept in it: clock.go; what to warn of:
//     warn.go.
//
// Several processes may share a file. On Linux (and macOS, where it was not tried) they take
// turns to write, in the order in which they ask, by the file <database>.workers/turns, which the first worker
// makes (ADR 0054). Other programs that write to the file do not: while one of them has a
// transaction open everybody waits, and one that writes all the time, with pauses of less
// than some milliseconds, makes calls fail as ErrBusy after BusyTimeout. Let it write in
// short transactions, or through DB.
//
// Opening the same file with another
// SQLite library inside this process is unsafe: POSIX locks belong to the
// process, so that our closing of a connection drops that library's. Use DB.
//
// The package does not replicate, does not back up, and does not work on
// network file systems that have no locks.
package sqlite
