// Package model runs the same random operations on package memstore and on SQLite or PostgreSQL. It compares every
// answer, and every row after each operation.
package model
