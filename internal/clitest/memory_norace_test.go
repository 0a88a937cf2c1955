//go:build !race

package clitest_test

// maxResident is how much memory, in KiB, a run may use.
const maxResident = 100 << 10
