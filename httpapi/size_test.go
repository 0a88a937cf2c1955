//go:build !race

package httpapi_test

// attackShare divides the requests of each attack of TestAttackBodies.
const attackShare = 1
