// Package filelock locks files, so that processes of one machine can tell which of them are alive. A lock belongs to
// the open file, not to the process: two opens in one process exclude each other. The system releases the lock when
// the file is closed or the process ends, however it ends.
package filelock

import "os"

// Close releases the lock of an open file, if it holds one, and closes the file. Closing alone is not enough: a
// program that is being started holds copies of all descriptors until it executes, and each copy keeps the lock.
func Close(f *os.File) error {
	Unlock(f)
	return f.Close()
}
