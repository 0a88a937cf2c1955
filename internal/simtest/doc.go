// Package simtest plays the whole of Weaver against models of it: random
// operations on two stores at once, histories judged for linearizability, a
// fault at every call of real work, and drains that leave no goroutine behind.
// It has tests only, and it alone may
// import the libraries that they need (rapid, porcupine, goleak).
//
// What holds for every test here: a run is repeatable from the seed that it
// prints when it fails, time is the fake clock of testing/synctest wherever a
// clock matters, and a short size runs with every `go test` while a long one
// is a flag away.
//
// It is no place for a store's or the engine's own tests: a defect found here
// is first reproduced in the suite of the package that has it.
package simtest
