//go:build race

package sqlite_test

import "github.com/goweaver/weaver/internal/rules"

// repeat is how often concurrent cases run under the race detector, which
// makes everything about ten times slower.
const repeat = 10

// sampled: the suite plays its core, with all concurrent topics, and one in ten of the rest.
const sampled = true

// Transactions move fewer rows, so that cases that need several of them are smaller.
func init() { rules.MaxMoves = 100 }
