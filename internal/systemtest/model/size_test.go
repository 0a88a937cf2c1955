//go:build !race

package model_test

// modelChecks is how many sequences TestModel runs.
const modelChecks = 300
