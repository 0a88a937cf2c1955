// Package conn is a connection to PostgreSQL with prepared statements, and what
// belongs to it: parameters, rows, transactions, a pool, and the meaning of
// PostgreSQL's error codes.
//
// It knows no tables. What always holds:
//
//   - A [Conn] and its statements are used by one goroutine at a time.
//   - A statement that is run is only queued. The next call that needs an answer
//     sends all that is queued and reads all answers, in one round trip.
//   - The first error of a transaction sticks: each later call returns it, until the
//     transaction ends or is rolled back to a savepoint.
//   - Every round trip ends with the transaction's context, or after
//     [Settings].RoundTimeout. A connection that broke is not used again.
//   - Texts are written for SQLite and read by PostgreSQL as [Translate] says.
package conn
