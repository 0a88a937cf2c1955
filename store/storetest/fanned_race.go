//go:build race

package storetest

// fanned is the number of dependents made by fan under the race detector. It exceeds one transaction if the store's
// tests limit transactions to 100 rows.
var fanned = 250
