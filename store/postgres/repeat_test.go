//go:build !race

package postgres_test

const (
	repeat = 10    // how often concurrent cases run: each has a database of its own
	played = parts // of the suite
	states = 5     // of TestPlans: all of fills
)
