// Package clitest holds the sessions of the command line: scripts in
// testdata that run the weaver program and say what it must print, with which
// exit code. It has no code of its own; testscript stays out of the packages
// that users import.
package clitest
