// Package model compares random operations on SQLite with the same operations
// on package memstore: every answer, and every row after each operation.
package model
