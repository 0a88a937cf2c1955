//go:build race

package postgres_test

// The sizes of repeat_test.go for runs with the race detector.
const (
	repeat  = 5
	sampled = true
	states  = 1 // states of TestPlans
)
