// Package postgres keeps tasks in PostgreSQL 13 or later, for any number of machines.
//
// All tables are in a schema of their own, weaver unless the URL says schema=NAME; the store
// touches nothing outside of it. [github.com/goweaver/weaver/store] is the contract.
//
// Where to find the code:
//
//   - The verbs of the port in SQL: package internal/sqlstore. The part that depends on
//     PostgreSQL: database.go; statements over many tasks: bulk.go, enqueue.go,
//     record.go and heartbeat.go.
//   - Connections, round trips, transactions and error codes: internal/conn.
//   - Callers' transactions: intx.go (pgx), sqltx.go (database/sql), steptx.go.
//   - Notifications to other processes: notify.go, internal/notices. Proof of dead
//     workers: death.go, internal/session.
//   - URLs, checks of the server, migrations: url.go, check.go, migrate.go.
package postgres
