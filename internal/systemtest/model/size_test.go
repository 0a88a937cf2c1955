//go:build !race

package model_test

// modelChecks is how many sequences TestModel plays.
const modelChecks = 300
