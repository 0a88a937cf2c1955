// Package sqlstmt is the shared statement layer of the SQL stores: handles that bind
// parameters and read rows, row types, and a cache of values that many rows share. Below it
// each store provides a [Driver] for each prepared statement of its database.
//
// The package knows no tables. It does not use database/sql, whose interface values and locks
// cost more than the statements.
//
// Invariants:
//
//   - One goroutine at a time uses a statement. Its bindings persist between uses, so every
//     parameter must be bound before each use.
//   - The first error of a statement sticks until the statement is requested again, so that
//     only Exec, Run and Done need a check.
package sqlstmt
