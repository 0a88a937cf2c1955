package commit

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/goweaver/weaver/internal/filelock"
)

const (
	// lookEvery is the interval at which the path of the file is checked: the folder may be
	// removed or replaced while processes run.
	lookEvery = time.Second
	// A process polls at linePause until it is first in line, then at turnPause until the
	// turn is free.
	linePause = time.Millisecond
	turnPause = 250 * time.Microsecond
)

const (
	writeByte  = 0       // locked by the process that writes
	firstByte  = 1       // the first ticket
	urgentPart = 1 << 59 // by how much the ticket of an urgent transaction is lower: 18 years
)

// processes queues the processes that want to write to one database file. SQLite's own lock
// has no queue: a waiting process polls, and loses against processes that write all the
// time.
//
// A process that wants to write while another one writes or waits takes a ticket:
// it locks the byte of a file whose number is the time in nanoseconds. It is first in line
// when no byte below is locked; then it takes the lock of byte 0, and gives its ticket
// back. Tickets of urgent transactions are below all others.
//
// Nothing depends on it: SQLite's lock decides who writes. A process goes on without a turn
// when there is no folder, when it may not open the file, when the system has no such
// locks, or when the turn is not free for longer than patience (a process that is stopped
// may hold it). The system drops the locks of a process that ends.
//
// It waits by polling, so that it works inside a testing/synctest bubble. Only the caller that
// holds the process's own turn may use it.
type processes struct {
	// openFile opens the file whose bytes are locked; nil disables turns.
	openFile func() (*os.File, error)
	patience time.Duration

	file   *os.File
	looked time.Time
}

// take waits for the turn of this process and returns the function that gives it back,
// which may be called more than once. Its error is the cause of ctx.
func (p *processes) take(ctx context.Context, urgent bool) (giveBack func(), err error) {
	none := func() {}
	f := p.open()
	if f == nil {
		return none, nil
	}
	giveBack = func() { filelock.UnlockByte(f, writeByte) }
	if !filelock.LockedRange(f, firstByte, math.MaxInt64) && filelock.TryByte(f, writeByte) {
		return giveBack, nil
	}
	ticket, ok := takeTicket(f, urgent)
	if !ok {
		return none, nil
	}
	defer filelock.UnlockByte(f, ticket)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for began := time.Now(); time.Since(began) < p.patience; {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-pause.C:
		}
		switch {
		case filelock.LockedRange(f, firstByte, ticket):
			pause.Reset(linePause)
		case filelock.TryByte(f, writeByte):
			return giveBack, nil
		default:
			pause.Reset(turnPause)
		}
	}
	return none, nil
}

// takeTicket locks the byte of the time. Another process may have the same one.
func takeTicket(f *os.File, urgent bool) (ticket int64, ok bool) {
	const tries = 1000
	ticket = max(time.Now().UnixNano(), urgentPart+firstByte) // the latter of a clock that is wrong
	if urgent {
		ticket -= urgentPart
	}
	for range tries {
		if filelock.TryByte(f, ticket) {
			return ticket, true
		}
		ticket++
	}
	return 0, false
}

// open returns the file, or nil if it cannot be opened.
func (p *processes) open() *os.File {
	if p.openFile == nil || !filelock.Bytes {
		return nil
	}
	if p.file != nil {
		now := time.Now()
		if now.Sub(p.looked) < lookEvery {
			return p.file
		}
		p.looked = now
		open, err := p.file.Stat()
		if named, nerr := os.Lstat(p.file.Name()); err == nil && nerr == nil && os.SameFile(open, named) {
			return p.file
		}
		p.close()
	}
	// The first worker makes the folder. Without workers there are no leases to renew in time.
	f, err := p.openFile()
	if err != nil {
		return nil
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil
	}
	p.file = f
	return f
}

// close closes the file. The caller ensures that no turn is held or awaited.
func (p *processes) close() {
	if p.file != nil {
		_ = p.file.Close() // which has no locks
		p.file = nil
	}
}
