// Package model compares random operations on SQLite and on PostgreSQL with the same
// operations on package memstore: every answer, and every row after each operation.
package model
