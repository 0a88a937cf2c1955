//go:build !race

package storetest

// fanned is how many dependents fan makes: more than one transaction of a store
// moves. [Large] sets it.
var fanned = 1250
