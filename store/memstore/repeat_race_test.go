//go:build race

package memstore_test

// repeat is how often concurrent cases run under the race detector, which
// makes everything about ten times slower.
const repeat = 10
