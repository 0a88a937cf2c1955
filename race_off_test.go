//go:build !race

package weaver_test

const underRace = false
