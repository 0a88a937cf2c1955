// Package clitest tests the command line: scripts in testdata run the weaver
// program and check what it prints and its exit code; tests in Go start it as a
// process, to signal or kill it. Tests named TestE2E… build programs or write
// much, and are run by make e2e. The package has no code of its own; testscript
// stays out of the packages that users import.
package clitest
