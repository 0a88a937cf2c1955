//go:build !race

package storetest

// fanned is how many dependents fan makes: more than one transaction of a store
// moves.
const fanned = 1250
