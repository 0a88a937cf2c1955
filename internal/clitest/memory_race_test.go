//go:build race

package clitest_test

// maxResident is how much memory, in KiB, a run may use; the race detector
// needs several times that of the program.
const maxResident = 1 << 20
