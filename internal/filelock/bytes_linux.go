package filelock

// Commands for open file description locks (fcntl F_OFD_SETLK, F_OFD_GETLK).
const (
	getLock = 36
	setLock = 37
)
