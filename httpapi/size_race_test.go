//go:build race

package httpapi_test

// attackShare divides the requests of each attack of TestAttackBodies: the heap is
// measured without the race detector, which only needs some at a time.
const attackShare = 10
