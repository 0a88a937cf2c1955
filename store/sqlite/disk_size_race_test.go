//go:build race

package sqlite_test

// diskShare: one of so many points of the short size is played under the race
// detector, which makes everything about ten times slower.
const diskShare = 20
