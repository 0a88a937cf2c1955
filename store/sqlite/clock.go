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

// keepEvery is the minimum interval at which write transactions store the clock. Later times
// are known to this process only.
const keepEvery = time.Second

// storeClock is the clock of a store, kept in its file. No process with the file open, now or
// later, shows an earlier time. The exceptions are a stored time that leads the machine's
// clock by more than [clock.MaxLead], and an operator who accepts the machine's clock.
type storeClock struct {
	clock.Clock
	kept atomic.Int64 // the stored time, in microseconds

	// Used by the leader only.
	changes  int64     // rows changed by its connection before the transaction
	read     time.Time // when it last read the time stored by other processes
	accepted int64     // when an operator last accepted the machine's clock, in microseconds
	rescued  time.Time // when it last went back and the affected tasks were made due

	forget func() // clears the cached due times
}

const (
	sqlClock = `
SELECT CAST(value AS INTEGER), (SELECT CAST(value AS INTEGER) FROM weaver_store_meta WHERE namespace = '' AND key = 'clock_accepted')
FROM weaver_store_meta WHERE namespace = '' AND key = 'clock'`
	// A stored time later than ?2 was wrong (clock.MaxLead).
	sqlKeepClock = `
INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'clock', ?1)
ON CONFLICT DO UPDATE SET value = excluded.value
WHERE CAST(value AS INTEGER) < CAST(excluded.value AS INTEGER) OR CAST(value AS INTEGER) > ?2`
	// Tasks enqueued or to be retried by a wrong clock become due after ?1 with the delay that
	// they had, if the delay is at most ?3. Rows stored after ?2 were stored by that clock.
	sqlRescueDispatch = `
UPDATE weaver_outbox_events AS o SET sent_until = NULL, available_at = ?1 + max(0, o.available_at -
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

// load continues the clock of a newly opened store from the stored time, plus the time that
// may have passed unstored.
func (s *storeClock) load(c *conn.Conn) {
	if at := s.written(c); at.After(s.Now()) {
		s.Raise(at.Add(keepEvery))
	}
}

// begun runs at the begin of each transaction of the leader. external reports that another
// process committed.
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

// written returns the stored time. It returns zero if there is no time or no schema yet.
func (s *storeClock) written(c *conn.Conn) (at time.Time) {
	st := c.Stmt(sqlClock)
	if st.One() {
		at, s.accepted = st.ColTime(0), st.ColInt(1)
	}
	_ = st.Done() // without a schema; the next statement finds any other error
	return at
}

// ending runs at the end of each transaction of the leader. It stores the clock if the
// transaction wrote anything.
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

// rescue makes tasks due that were stored while the clock was wrong: more than lead after now,
// with a delay of at most delay. It reads all tasks that wait to start, once each time the
// clock goes back.
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

// keep stores the clock in a write transaction. It returns an error only if that ended the
// transaction. Without a schema there is nothing to store.
func (s *storeClock) keep(c *conn.Conn) error {
	now, kept := s.Now().UnixMicro(), s.kept.Load()
	if time.Duration(now-kept)*time.Microsecond < keepEvery {
		return nil
	}
	if err := c.Stmt(sqlKeepClock).Int(1, now).Int(2, now+clock.MaxLead.Microseconds()).Run(); err != nil && c.Autocommit() {
		return err
	}
	// If the transaction is rolled back, the next one after a second stores it.
	s.kept.Store(now)
	return nil
}

// AcceptClock sets the store's clock to the machine's time, even backwards, and returns the
// previous lead. Programs that have the file open follow within seconds. Tasks that were
// stored with the leading clock and due at once are due now.
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
		// An instant chosen by a user may be right: planned tasks stay as they are.
		return db.clock.rescue(t.Conn, 0, 0)
	}})
	if err != nil {
		return 0, fmt.Errorf("accept the machine's clock: %w", err)
	}
	return ahead, nil
}
