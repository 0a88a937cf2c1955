// Package postgres keeps tasks in PostgreSQL 13 or later, for any number of machines.
//
// All tables stand in a schema of their own, weaver unless the URL says
// schema=NAME; nothing outside of it is touched. [github.com/goweaver/weaver/store]
// is the contract.
package postgres
