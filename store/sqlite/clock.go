package sqlite

import (
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/internal/clock"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// keepEvery is how often the clock is written down, by a transaction that writes
// anyway. What it showed after that is known to this process only.
const keepEvery = time.Second

// storeClock is the clock of a store, kept in its file: no process that opens the
// file later, or has it open, shows an earlier time.
type storeClock struct {
	clock.Clock
	kept atomic.Int64 // what is written down, in microseconds

	// Used by the leader only.
	changes int64     // rows changed by its connection before the transaction
	read    time.Time // when it last read what other processes wrote down
}

const (
	sqlClock     = `SELECT CAST(value AS INTEGER) FROM weaver_store_meta WHERE namespace = '' AND key = 'clock'`
	sqlKeepClock = `
INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'clock', ?1)
ON CONFLICT DO UPDATE SET value = excluded.value WHERE CAST(value AS INTEGER) < CAST(excluded.value AS INTEGER)`
)

// load has the clock of a store that was just opened go on from what was
// written down, and from what may have followed that.
func (s *storeClock) load(c *conn.Conn) {
	if at := s.written(c); at.After(s.Now()) {
		s.Raise(at.Add(keepEvery))
	}
}

// begun runs at the begin of each transaction of the leader. external says that
// another process committed.
func (s *storeClock) begun(c *conn.Conn, external bool) {
	s.changes = c.Raw().TotalChanges()
	if external && time.Since(s.read) >= keepEvery {
		s.read = time.Now()
		s.Raise(s.written(c))
	}
}

// written reads what is written down; zero: nothing, or there is no schema yet.
func (s *storeClock) written(c *conn.Conn) (at time.Time) {
	st := c.Stmt(sqlClock)
	if st.One() {
		at = st.ColTime(0)
	}
	_ = st.Done() // without a schema, and whatever else it is the next statement finds it
	return at
}

// ending runs at the end of each transaction of the leader, and keeps the clock
// if that wrote something.
func (s *storeClock) ending(c *conn.Conn) error {
	if c.Raw().TotalChanges() == s.changes {
		return nil
	}
	return s.keep(c)
}

// keep writes the clock down in a transaction that writes. It returns an error
// only if that ended the transaction; without a schema there is nothing to keep.
func (s *storeClock) keep(c *conn.Conn) error {
	now, kept := s.Now().UnixMicro(), s.kept.Load()
	if time.Duration(now-kept)*time.Microsecond < keepEvery {
		return nil
	}
	if err := c.Stmt(sqlKeepClock).Int(1, now).Run(); err != nil && c.Autocommit() {
		return err
	}
	// Should the transaction be rolled back, the next one after a second keeps it.
	s.kept.Store(now)
	return nil
}
