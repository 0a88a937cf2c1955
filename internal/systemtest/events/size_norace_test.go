//go:build !race

package events_test

const raced = false
