// Package archtest holds the rules of the house as tests: who may import
// whom, what builds for the browser, who may start goroutines, what every
// file must say about itself.
//
// The package has no code of its own. Each rule is one test, and its message
// says what to do. An exception stands in a table beside its rule, with the
// reason; a rule that is wrong is changed here, not worked around.
package archtest
