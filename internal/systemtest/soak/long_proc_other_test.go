//go:build !linux

package soak_test

// descriptors and resident are only known on Linux; nothing else of the long
// run rests on them.
func descriptors() (int, error) { return 0, nil }
func resident() (int64, error)  { return 0, nil }
