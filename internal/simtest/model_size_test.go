//go:build !race

package simtest_test

// modelChecks is how many sequences TestModel plays.
const modelChecks = 500
