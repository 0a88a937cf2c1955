//go:build race

package sqlite_test

// repeat is how often concurrent cases run under the race detector, which
// makes everything about ten times slower.
const repeat = 10

// memoryShare has SQLite in memory play one case in three: in a file it plays all.
const memoryShare = 3
