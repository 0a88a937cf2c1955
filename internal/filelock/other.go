//go:build !unix || illumos || solaris || aix

package filelock

import "os"

// Supported: this system has no locks.
const Supported = false

// NoFollow is no flag here.
const NoFollow = 0

// Try takes no lock.
func Try(*os.File) (bool, error) { return false, nil }

// TryShare takes no lock.
func TryShare(*os.File) (bool, error) { return false, nil }

// Lock takes no lock, and does not wait.
func Lock(*os.File) error { return nil }

// Unlock does nothing.
func Unlock(*os.File) {}

// OwnerOf does not know.
func OwnerOf(os.FileInfo) (uid int, ok bool) { return 0, false }
