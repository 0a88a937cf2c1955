//go:build !race

package postgres_test

const (
	repeat = 10    // runs of each concurrent case, each in its own database
	played = parts // parts of the suite that run
	states = 5     // states of TestPlans: all of fills
)
