//go:build !race

package sqlite_test

// repeat is the number of runs of concurrent cases of the conformance suite.
const repeat = 40

// sampled makes the suite play its core, with all concurrent topics, and one in ten of the
// other cases.
const sampled = false
