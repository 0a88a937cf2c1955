//go:build race

package httpapi_test

import "math"

// attackShare divides the requests of each attack of TestAttackBodies: the race detector needs only
// some concurrent requests. Its own memory counts, so the heap has no limit.
const (
	attackShare = 10
	attackHeap  = math.MaxUint64
)
