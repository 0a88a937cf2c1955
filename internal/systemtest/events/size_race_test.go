//go:build race

package events_test

// raced: everything takes several times as long.
const raced = true
