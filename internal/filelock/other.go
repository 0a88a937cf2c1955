//go:build !unix || illumos || solaris || aix

package filelock

import "os"

// Supported is false: the system has no file locks.
const Supported = false

// NoFollow has no effect on this system.
const NoFollow = 0

// Try always returns false.
func Try(*os.File) (bool, error) { return false, nil }

// TryShare always returns false.
func TryShare(*os.File) (bool, error) { return false, nil }

// Lock returns at once without a lock.
func Lock(*os.File) error { return nil }

// Unlock does nothing.
func Unlock(*os.File) {}

// OwnerOf always returns false.
func OwnerOf(os.FileInfo) (uid int, ok bool) { return 0, false }
