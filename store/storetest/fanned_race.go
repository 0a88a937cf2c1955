//go:build race

package storetest

// fanned is how many dependents fan makes under the race detector: more than one
// transaction of a store moves, if the store's tests have it move 100 rows then.
var fanned = 250
