// Package conn is a connection to PostgreSQL with prepared statements. It also has parameters,
// rows, transactions, a pool, and the meaning of PostgreSQL's error codes.
//
// It knows no tables. Invariants:
//
//   - One goroutine at a time uses a [Conn] and its statements.
//   - Running a statement only queues it. The next call that needs an answer sends all
//     queued requests and reads all answers, in one round trip.
//   - The first error of a transaction sticks: each later call returns it, until the
//     transaction ends or is rolled back to a savepoint.
//   - Every round trip ends with the transaction's context, or after
//     [Settings].RoundTimeout. A broken connection is not used again.
//   - Texts are written for SQLite; [Translate] adapts them to PostgreSQL.
package conn
