package commit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

const (
	// checkpointPages is the length of the write-ahead log, in pages of 8 KiB, from which on
	// the writer copies it into the database.
	checkpointPages = 2000
	pageSize        = 8 << 10
	// shrinkEvery is the minimum interval between two attempts to copy and truncate an
	// oversized log.
	shrinkEvery = time.Second
	// shrinkTries is the number of copies next to a writer that extends the log, before the
	// rest is copied with the lead.
	shrinkTries = 8
	// shrinkWait is the wait, with the lead, for readers that are about to end before the log
	// is truncated.
	shrinkWait = 20 * time.Millisecond
)

// checkpoints is a writer's state about its log. The leader uses it; shrink runs concurrently.
type checkpoints struct {
	pages int // length of the log after the last commit
	next  int // the length that triggers the next checkpoint

	heldSince atomic.Int64 // start time of a reader's hold on a part of the log, in ns; 0: no hold

	shrinking atomic.Bool
	shrunk    time.Time    // start of the last shrink
	group     *group.Group // of shrink
	conn      *conn.Conn   // of shrink, reused
	closed    sync.Once
}

// note records the length of the log after a commit.
func (c *checkpoints) note(pages int) {
	if pages < c.pages {
		c.next = checkpointPages // it started over
	}
	c.pages = pages
}

// held records whether a checkpoint found a reader that keeps a part of the log from being
// copied.
func (c *checkpoints) held(held bool) {
	if !held {
		c.heldSince.Store(0)
		return
	}
	c.heldSince.CompareAndSwap(0, time.Now().UnixNano())
}

// LogHeld returns the time since which a reader, of any process, keeps a part of the log from
// being copied. Zero means that no such reader is known.
func (w *Writer) LogHeld() time.Time {
	if ns := w.log.heldSince.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// checkpointIfLong copies the log into the database. The leader runs it after its group has
// its answers and before it hands over the lead. Only then is the log quiet, so that it can be
// copied to its end and start over; with a busy writer it would grow without end. 2,000 pages
// take about 10 ms.
//
// A reader with an old snapshot ends the copying early. Then the next try comes after another
// 2,000 pages, and a log that became long this way is shrunk.
func (w *Writer) checkpointIfLong() {
	if w.shrinkIfLong() || w.log.pages < w.log.next {
		return
	}
	w.log.next = w.log.pages + checkpointPages
	// A failure does no harm: the log stays, and the next checkpoint tries again.
	pages, copied, err := w.conn.Raw().WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if err == nil {
		w.log.held(copied < pages)
	}
}

// shrinkIfLong starts shrink if the log is over its limit, at most once a second, and reports
// whether the log is over its limit. The caller has the lead.
func (w *Writer) shrinkIfLong() bool {
	l := &w.log
	if w.cfg.Connect == nil || l.pages*pageSize <= w.cfg.LogLimit {
		return false
	}
	if time.Since(l.shrunk) < shrinkEvery || !l.shrinking.CompareAndSwap(false, true) {
		return true
	}
	l.shrunk = time.Now()
	l.group.Go("shrink the log", func(ctx context.Context) error {
		defer l.shrinking.Store(false)
		w.shrink(ctx)
		return nil
	})
	return true
}

// shrink copies a long log on its own connection, concurrently with the writer, which need not
// wait for gigabytes. It then takes the lead, copies the remaining pages and truncates the
// log. A reader with an old snapshot ends it early. Failures do no harm: the next shrink tries
// again.
func (w *Writer) shrink(ctx context.Context) {
	l := &w.log
	if l.conn == nil {
		c, err := w.cfg.Connect()
		if err != nil {
			return
		}
		l.conn = c
	}
	defer l.conn.Interruptible(ctx)()
	for before, tries := -1, 0; tries < shrinkTries; tries++ {
		pages, copied, err := l.conn.Raw().WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		if err != nil {
			return
		}
		if pages-copied <= checkpointPages {
			break
		}
		if copied == before {
			l.held(true)
			return
		}
		before = copied
	}
	_ = w.Exclusive(ctx, func(c *conn.Conn) { w.truncate(c) }) // closed, or ctx ended
}

// truncate truncates the log, with the lead. It fails while the log is being read.
func (w *Writer) truncate(c *conn.Conn) {
	if c.Raw().BusyTimeout(shrinkWait) != nil {
		return
	}
	_, _, err := c.Raw().WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if err == nil {
		w.log.pages, w.log.next = 0, checkpointPages
	}
	w.log.held(err != nil)
	_ = c.Raw().BusyTimeout(w.cfg.Busy) // it fails only without a connection
}

// close waits for shrink. The queue is closed, so no other shrink begins.
func (c *checkpoints) close() {
	c.closed.Do(func() {
		_ = c.group.Wait() // its functions return nil
		if c.conn != nil {
			_ = c.conn.Close() // it only copied
		}
	})
}
