// Package task is Weaver's vocabulary: ids, states and their legal moves, and
// the plain values that every other package talks in (Task, Attempt, Decision,
// Step, Lease, Job).
//
// It is pure: no I/O, no clock, no goroutines. What it declares are facts
// that hold in every store; the words are those of the design, one per
// concept, in Go, SQL, CLI and docs alike.
//
// It does not know how tasks are stored (package store), decided about (package
// decide) or run (internal/engine).
package task
