//go:build !race

package sqlite_test

// diskShare: one of so many points of the short size is played.
const diskShare = 1
