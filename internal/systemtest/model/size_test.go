//go:build !race

package model_test

// modelChecks is how many sequences TestModel runs.
const modelChecks = 100

// postgresChecks is the same on PostgreSQL, where each takes ten times as long.
const postgresChecks = 8
