// Package task is Weaver's vocabulary: ids, states and their legal transitions, and the plain values that all other
// packages exchange (Task, Attempt, Decision, Step, Lease, Job).
//
// The package is pure: no I/O, no clock, no goroutines. Its declarations hold in every store, and its names are the
// same in Go, SQL, CLI and docs.
//
// It does not know how tasks are stored (package store), decided about (package decide) or run (internal/engine).
package task
