//go:build !race

package sqlite_test

// repeat is how often concurrent cases of the conformance suite run.
const repeat = 40

// memoryShare has SQLite in memory play all cases.
const memoryShare = 1
