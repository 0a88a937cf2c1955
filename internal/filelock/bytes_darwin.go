package filelock

// The locks of open files (fcntl F_OFD_SETLK, F_OFD_GETLK).
const (
	setLock = 90
	getLock = 92
)
