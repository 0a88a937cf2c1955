//go:build !linux

package soak_test

// descriptors and resident are available only on Linux; the rest of the long run does not depend on them.
func descriptors() (int, error) { return 0, nil }
func resident() (int64, error)  { return 0, nil }
