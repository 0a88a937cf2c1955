//go:build !race

package sqlite_test

// repeat is how often concurrent cases of the conformance suite run.
const repeat = 40

// sampled: the suite plays its core, with all concurrent topics, and one in ten of the rest.
const sampled = false
