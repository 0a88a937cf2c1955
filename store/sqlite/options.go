package sqlite

import "time"

// Sync says when a commit is on the disk.
type Sync int

const (
	// Full waits for the disk at every commit: what was acknowledged survives
	// a power failure. The default.
	Full Sync = iota
	// Normal waits only at checkpoints. A power failure or a crash of the
	// operating system may take back the last commits, in order and without
	// damage; a crash of only the program takes back nothing.
	Normal
	// off never waits. For tests.
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
	old        bool   // new files keep their free pages, as those of earlier versions
	scan       int    // tasks, jobs or keys in one part of a scan
	looks      int    // rows that one page of a list looks at
	counted    int    // how far an overview counts
	graphEdges int    // edges of a page of a graph
	logLimit   int    // bytes
	vfs        string // SQLite's file layer, "" for the operating system's
	syncFolder func(dir string)
	shift      time.Duration // of the machine's clock
}

func defaults() options {
	return options{sync: Full, busy: 5 * time.Second, syncFolder: syncFolder, logLimit: logLimit}
}

// Synchronous chooses between Full (the default) and Normal.
func Synchronous(s Sync) Option { return func(o *options) { o.sync = s } }

// BusyTimeout says how long to wait while another process or a caller's own
// transaction holds the write lock, before store.ErrBusy. The default is 5
// seconds; a lease should live longer than that.
func BusyTimeout(d time.Duration) Option { return func(o *options) { o.busy = d } }
