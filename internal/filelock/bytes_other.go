//go:build !linux && !darwin

package filelock

import "os"

// Bytes: this system has no locks of single bytes that belong to an open file.
const Bytes = false

// TryByte takes no lock.
func TryByte(*os.File, int64) bool { return false }

// UnlockByte does nothing.
func UnlockByte(*os.File, int64) {}

// LockedRange knows of no lock.
func LockedRange(*os.File, int64, int64) bool { return false }
