// Package filelock has the locks of files with which processes of one machine tell that
// they live. A lock belongs to the open file, not to the process: two openings in one
// process exclude each other. It ends with the file, or with the process, however that
// ends.
package filelock

import "os"

// Close frees the lock of an open file, if that has it, and closes the file. Closing alone
// is not enough: a program that is being started has copies of all descriptors until it
// executes, and while one of them is open the lock is held.
func Close(f *os.File) error {
	Unlock(f)
	return f.Close()
}
