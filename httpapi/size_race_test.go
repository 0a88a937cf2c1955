//go:build race

package httpapi_test

// attackShare divides the requests of each attack of TestAttackBodies: the race detector needs only
// some concurrent requests. The heap is measured without it.
const attackShare = 10
