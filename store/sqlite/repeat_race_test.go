//go:build race

package sqlite_test

import "github.com/goweaver/weaver/internal/rules"

// repeat is how often concurrent cases run under the race detector, which
// makes everything about ten times slower.
const repeat = 10

// Transactions move fewer rows, so that cases that need several of them are smaller.
func init() { rules.MaxMoves = 100 }
