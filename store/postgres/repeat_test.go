//go:build !race

package postgres_test

const (
	repeat  = 10    // runs of each concurrent case, each in its own database
	sampled = false // whether only one part of the suite runs
	states  = 5     // states of TestPlans: all of fills
)
