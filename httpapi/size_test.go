//go:build !race

package httpapi_test

// attackShare divides the requests of each attack of TestAttackBodies, attackHeap is the limit of the heap in bytes.
const (
	attackShare = 1
	attackHeap  = 192 << 20
)
