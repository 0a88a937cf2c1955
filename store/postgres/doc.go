// Package postgres keeps tasks in PostgreSQL 13 or later, for any number of machines.
//
// All tables stand in a schema of their own, weaver unless the URL says
// schema=NAME; nothing outside of it is touched. [github.com/goweaver/weaver/store]
// is the contract.
//
// Where to find what:
//
//   - The verbs of the port, in SQL: package internal/sqlstore. What they need of
//     this database: database.go; its own statements for what happens alike to many
//     tasks: bulk.go, and enqueue.go, record.go, heartbeat.go.
//   - Connections, round trips, transactions and error codes: internal/conn.
//   - Callers' transactions: intx.go (pgx), sqltx.go (database/sql), steptx.go.
//   - What other processes are told: notify.go, internal/notices. How the death of
//     workers is proven: death.go, internal/session.
//   - URLs, checks of the server, migrations: url.go, check.go, migrate.go.
package postgres
