// Package sqlstmt is what the stores in SQL share of their statements: handles
// that bind parameters and read rows, row types, and a cache of the values that
// many rows have in common. Below it is a [Driver] for each prepared statement,
// which a store has for its database.
//
// It knows no tables. database/sql is not in between: its interface values and
// locks cost more than the statements.
//
// What always holds:
//
//   - A statement is used by one goroutine at a time. Its bindings stay from one
//     use to the next, so every parameter must be bound before each use.
//   - The first error of a statement sticks until it is asked for again, so that
//     only Exec, Run and Done need to be checked.
package sqlstmt
