//go:build !linux && !darwin

package filelock

import "os"

// Bytes is false: the system has no byte locks that belong to an open file.
const Bytes = false

// TryByte always returns false.
func TryByte(*os.File, int64) bool { return false }

// UnlockByte does nothing.
func UnlockByte(*os.File, int64) {}

// LockedRange always returns false.
func LockedRange(*os.File, int64, int64) bool { return false }
