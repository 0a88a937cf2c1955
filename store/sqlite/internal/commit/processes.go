package commit

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/goweaver/weaver/internal/filelock"
)

const (
	// lookEvery is the interval at which the path of the file is checked, because the folder
	// may be removed or replaced while processes run.
	lookEvery = time.Second
	// A process polls at linePause until it is first in line, then at turnPause until the turn
	// is free.
	linePause = time.Millisecond
	turnPause = 250 * time.Microsecond
)

const (
	writeByte  = 0       // locked by the writing process
	firstByte  = 1       // the first ticket
	urgentPart = 1 << 59 // subtracted from the ticket of an urgent transaction: 18 years
)

// processes queues the processes that want to write to one database file. SQLite's own lock
// has no queue: a waiting process polls, and loses against processes that write constantly.
//
// A process that wants to write while another one writes or waits takes a ticket: it locks the
// byte of a file whose number is the time in nanoseconds. It is first in line when no lower
// byte is locked. Then it takes the lock of byte 0 and releases its ticket. Tickets of urgent
// transactions are below all others.
//
// Safety does not depend on it: SQLite's lock decides which process writes. A process
// continues without a turn if there is no folder, if it cannot open the file, or if the system
// has no such locks. It also continues if the turn is not free within patience, because a
// stopped process may hold it. The system drops the locks of a process that ends.
//
// It waits by polling, so that it works inside a testing/synctest bubble. Only the holder of
// the process's own turn may use it.
type processes struct {
	// openFile opens the file whose bytes are locked; nil disables turns.
	openFile func() (*os.File, error)
	patience time.Duration

	file   *os.File
	looked time.Time
}

// take waits for the turn of this process and returns the function that releases it, which may
// be called more than once. Its error is the cause of ctx.
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

// takeTicket locks the byte of the current time. If another process has it, it takes a later
// byte.
func takeTicket(f *os.File, urgent bool) (ticket int64, ok bool) {
	const tries = 1000
	ticket = max(time.Now().UnixNano(), urgentPart+firstByte) // the minimum covers a wrong clock
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
	// The first worker creates the folder. Without workers no lease needs a timely renewal.
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
		_ = p.file.Close() // it holds no locks
		p.file = nil
	}
}
