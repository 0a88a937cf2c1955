// Package archtest checks the rules of this repository as tests: the import graph, the places that may start
// goroutines, sleep or skip a test, and the need for comments.
//
// The package has only tests. Each rule is one test, and its message says what to do. An exception is an entry in the
// rule's table, with the reason. A wrong rule is changed here, not worked around.
package archtest
