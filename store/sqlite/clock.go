package sqlite

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/internal/clock"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// keepEvery is how often the clock is written down, by a transaction that writes
// anyway. What it showed after that is known to this process only.
const keepEvery = time.Second

// storeClock is the clock of a store, kept in its file: no process that opens the
// file later, or has it open, shows an earlier time, unless the one that is kept is
// further ahead of the machine's than [clock.MaxLead], or a person accepts the machine's.
type storeClock struct {
	clock.Clock
	kept atomic.Int64 // what is written down, in microseconds

	// Used by the leader only.
	changes  int64     // rows changed by its connection before the transaction
	read     time.Time // when it last read what other processes wrote down
	accepted int64     // when a person last accepted the machine's clock, in microseconds
	rescued  time.Time // when it last went back, and what was stored meanwhile was made due

	forget func() // what is known of when tasks are due
}

const (
	sqlClock = `
SELECT CAST(value AS INTEGER), (SELECT CAST(value AS INTEGER) FROM weaver_store_meta WHERE namespace = '' AND key = 'clock_accepted')
FROM weaver_store_meta WHERE namespace = '' AND key = 'clock'`
	// A time that is further ahead than ?2 was wrong (clock.MaxLead).
	sqlKeepClock = `
INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'clock', ?1)
ON CONFLICT DO UPDATE SET value = excluded.value
WHERE CAST(value AS INTEGER) < CAST(excluded.value AS INTEGER) OR CAST(value AS INTEGER) > ?2`
	// What was enqueued, or is to be retried, by a clock that was wrong, is due as long from
	// ?1 on as it was to be from then on, if that is at most ?3. What was stored after ?2 was
	// stored by that clock.
	sqlRescueDispatch = `
UPDATE weaver_outbox_events AS o SET available_at = ?1 + max(0, o.available_at -
  (SELECT t.updated_at FROM weaver_tasks t WHERE t.namespace = o.namespace AND t.task_id = o.task_id))
WHERE o.available_at > ?2 AND EXISTS (SELECT 1 FROM weaver_tasks t WHERE t.namespace = o.namespace AND t.task_id = o.task_id AND t.updated_at > ?2 AND o.available_at - t.updated_at <= ?3)`
	sqlRescueTasks = `
UPDATE weaver_tasks SET updated_at = ?1, ready_at = CASE WHEN ready_at > ?2 THEN
  (SELECT o.available_at FROM weaver_outbox_events o WHERE o.namespace = weaver_tasks.namespace AND o.task_id = weaver_tasks.task_id) ELSE ready_at END
WHERE (namespace, task_id) IN (SELECT o.namespace, o.task_id FROM weaver_outbox_events o CROSS JOIN weaver_tasks t
  ON t.namespace = o.namespace AND t.task_id = o.task_id WHERE t.updated_at > ?2 AND o.available_at - t.updated_at <= ?3)`
	sqlAcceptClock = `
INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', ?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value`
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
		before := s.accepted
		at := s.written(c)
		if s.accepted != before {
			s.Accept()
		}
		s.Raise(at)
	}
}

// written reads what is written down; zero: nothing, or there is no schema yet.
func (s *storeClock) written(c *conn.Conn) (at time.Time) {
	st := c.Stmt(sqlClock)
	if st.One() {
		at, s.accepted = st.ColTime(0), st.ColInt(1)
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
	if back := s.WentBack().To; back.After(s.rescued) {
		if err := s.rescue(c, clock.MaxLead, math.MaxInt64); err != nil && c.Autocommit() {
			return err
		}
		s.rescued = back
	}
	return s.keep(c)
}

// rescue makes due what was stored while the clock was wrong, which is what was stored
// more than lead after now and was to wait no longer than delay. It reads all tasks that wait to be started, once for each time
// that the clock goes back.
func (s *storeClock) rescue(c *conn.Conn, lead, delay time.Duration) error {
	now := s.Now()
	wrong := now.Add(lead).UnixMicro()
	for _, sql := range []string{sqlRescueDispatch, sqlRescueTasks} {
		if err := c.Stmt(sql).Int(1, now.UnixMicro()).Int(2, wrong).Int(3, delay.Microseconds()).Run(); err != nil {
			return err
		}
	}
	s.forget()
	return nil
}

// keep writes the clock down in a transaction that writes. It returns an error
// only if that ended the transaction; without a schema there is nothing to keep.
func (s *storeClock) keep(c *conn.Conn) error {
	now, kept := s.Now().UnixMicro(), s.kept.Load()
	if time.Duration(now-kept)*time.Microsecond < keepEvery {
		return nil
	}
	if err := c.Stmt(sqlKeepClock).Int(1, now).Int(2, now+clock.MaxLead.Microseconds()).Run(); err != nil && c.Autocommit() {
		return err
	}
	// Should the transaction be rolled back, the next one after a second keeps it.
	s.kept.Store(now)
	return nil
}

// AcceptClock has the store take the machine's time, also if the store's clock is ahead
// of that, and returns by how much it was. Programs that have the file open follow within
// seconds. What was stored by the clock that was ahead, and due at once, is due now.
func (db *DB) AcceptClock(ctx context.Context) (ahead time.Duration, err error) {
	err = db.commit(ctx, &commit.Op{Weight: 1, Run: func(t *commit.Tx) error {
		ahead = db.clock.Ahead()
		db.clock.Accept()
		now := db.clock.Now().UnixMicro()
		db.clock.kept.Store(now)
		db.clock.accepted = now
		for _, key := range []string{"clock", "clock_accepted"} {
			if err := t.Conn.Stmt(sqlAcceptClock).Text(1, key).Int(2, now).Run(); err != nil {
				return err
			}
		}
		// An instant that somebody named may be right: what is planned stays as it is.
		return db.clock.rescue(t.Conn, 0, 0)
	}})
	if err != nil {
		return 0, fmt.Errorf("accept the machine's clock: %w", err)
	}
	return ahead, nil
}
