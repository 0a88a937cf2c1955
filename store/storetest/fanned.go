//go:build !race

package storetest

// fanned is the number of dependents made by fan: more than one transaction of a store moves. [Large] sets it.
var fanned = 1250
