// Package clitest tests the command line. Scripts in testdata run the weaver program and check its output and exit
// code. Tests in Go start it as a process, to signal or kill it. Tests named TestE2E… build programs or write much
// data, and are run by make e2e. The package contains only tests, so that users do not import testscript.
package clitest
