package filelock

// Commands for open file description locks (fcntl F_OFD_SETLK, F_OFD_GETLK).
const (
	setLock = 90
	getLock = 92
)
