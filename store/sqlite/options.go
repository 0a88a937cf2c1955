package sqlite

import "time"

// Sync is the durability of a commit.
type Sync int

const (
	// Full waits for the disk at every commit: acknowledged commits survive a power failure.
	// It is the default.
	Full Sync = iota
	// Normal waits only at checkpoints. A power failure or a crash of the operating system may
	// lose the last commits, in order and without damage. A crash of only the program loses
	// nothing.
	Normal
	// off never waits. It is for tests.
	off
)

func (s Sync) pragma() string {
	switch s {
	case Normal:
		return "NORMAL"
	case off:
		return "OFF"
	}
	return "FULL"
}

// Option changes how Open opens a database.
type Option func(*options)

type options struct {
	sync Sync
	busy time.Duration

	// Set by tests of this package only.
	old        bool   // new files keep their free pages, as in earlier versions
	scan       int    // tasks, jobs or keys in one part of a scan
	looks      int    // row limit of one page of a list
	counted    int    // limit of each count of an overview
	graphEdges int    // edges of a page of a graph
	logLimit   int    // in bytes
	vfs        string // SQLite's file layer, "" for the operating system's
	syncFolder func(dir string)
	shift      time.Duration // added to the machine's clock
}

func defaults() options {
	return options{sync: Full, busy: 5 * time.Second, syncFolder: syncFolder, logLimit: logLimit}
}

// Synchronous chooses between Full (the default) and Normal.
func Synchronous(s Sync) Option { return func(o *options) { o.sync = s } }

// BusyTimeout is the maximum wait while another process or a caller's own transaction holds
// the write lock, before store.ErrBusy. The default is 5 seconds; leases should be longer.
func BusyTimeout(d time.Duration) Option { return func(o *options) { o.busy = d } }
