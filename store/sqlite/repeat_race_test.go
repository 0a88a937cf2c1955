//go:build race

package sqlite_test

import "github.com/goweaver/weaver/internal/rules"

// repeat is the number of runs of concurrent cases under the race detector, which is about ten
// times slower.
const repeat = 10

// sampled makes the suite play its core, with all concurrent topics, and one in ten of the
// other cases.
const sampled = true

// Transactions move fewer rows, so that cases of several transactions are smaller.
func init() { rules.MaxMoves = 100 }
