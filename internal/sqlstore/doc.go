// Package sqlstore has the verbs of the store port in SQL: what an enqueue, a
// claim, a finish or an operator's command reads and writes. The stores in SQL
// share it, and each of them has a [Database] below it: connections,
// transactions, locks, migrations, and what its own database can do better.
//
// Where to look:
//
//   - What a verb does: the file of its name (enqueue.go, claim.go, finish.go,
//     record.go, operate.go, reap.go, collect.go, read.go), what follows from moves
//     of tasks: transition.go, propagate.go, wake.go, chore.go.
//   - What an operation has at hand: [Tx], and [View] for its reading half.
//   - What a move means is in internal/rules, what follows from it in
//     internal/propagate; neither is here.
//
// One text serves all databases. It is written for SQLite, whose plans are
// tested statement by statement, and in a form that PostgreSQL reads after
// changes of single words (store/postgres/internal/conn). So flags are integers,
// ON CONFLICT … DO UPDATE names its key, sums of integers are cast, and a
// statement that reads what the transaction decides on ends with a comment that
// says to lock its rows (lock) or to pass over those that are locked (claim o),
// for which SQLite has no need. What is locked before it is read is in [Locks].
//
// What always holds: an operation is a pure function of its transaction, and may
// run again. What follows from its commit stands in its [Effects].
package sqlstore
