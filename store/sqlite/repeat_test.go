//go:build !race

package sqlite_test

// repeat is how often concurrent cases of the conformance suite run.
const repeat = 40

// memoryShare has SQLite in memory play one case in three: in a file it plays all.
const memoryShare = 3
