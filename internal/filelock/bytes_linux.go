package filelock

// The locks of open files (fcntl F_OFD_SETLK, F_OFD_GETLK).
const (
	getLock = 36
	setLock = 37
)
