//go:build race

package postgres_test

import "github.com/goweaver/weaver/internal/rules"

// As without the race detector, in its size.
const (
	repeat = 5
	played = 1
)

// Transactions move fewer rows, so that cases that need several of them are smaller.
func init() { rules.MaxMoves = 100 }
