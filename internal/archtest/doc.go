// Package archtest checks the rules of this repository as tests: which package
// may import which, what may start goroutines, sleep or skip a test, and what
// needs a comment.
//
// The package has no code of its own. Each rule is one test, and its message
// says what to do. An exception is an entry of a table beside its rule, with
// the reason; a rule that is wrong is changed here, not worked around.
package archtest
