//go:build race

package model_test

// modelChecks is how many sequences TestModel runs under the race detector,
// which makes everything about ten times slower.
const modelChecks = 50

// postgresChecks is the same on PostgreSQL, where each takes ten times as long.
const postgresChecks = 4
