//go:build race

package postgres_test

// As without the race detector, in its size.
const (
	repeat = 5
	played = 1
	states = 1 // of TestPlans
)
