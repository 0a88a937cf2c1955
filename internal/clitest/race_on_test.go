//go:build race

package clitest_test

const underRace = true
