// Package sqlstore implements the verbs of the store port in SQL: the statements of an
// enqueue, a claim, a finish or an operator's command. The SQL stores share it. Each of them
// puts a [Database] below it: connections, transactions, locks, migrations, and faster
// statements of its own database.
//
// Where to look:
//
//   - A verb: the file of its name (enqueue.go, claim.go, finish.go, record.go,
//     operate.go, reap.go, collect.go, read.go). Effects of moves of tasks:
//     transition.go, propagate.go, wake.go, chore.go.
//   - The tools of an operation: [Tx], and [View] for its reading half.
//   - The decisions on moves are in internal/rules, their effects on other tasks in
//     internal/propagate; neither is here.
//
// One text serves all databases. It is written for SQLite, whose plans are tested statement by
// statement, and in a form that PostgreSQL accepts after changes of single words
// (store/postgres/internal/conn). Flags are therefore integers, ON CONFLICT … DO UPDATE names
// its key, and sums of integers are cast. A statement that reads rows for a decision of the
// transaction ends with a comment for PostgreSQL: to lock its rows (lock), or to skip locked
// rows (claim o). Locks taken before a read are in [Locks].
//
// An operation is a pure function of its transaction and may run again. The effects of its
// commit are in its [Effects].
package sqlstore
