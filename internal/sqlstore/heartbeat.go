package sqlstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlSeen = `
INSERT INTO weaver_workers (namespace, worker_id, name, ttl, last_seen, heartbeats_since) VALUES (?1, ?2, '', ?3, ?4, ?5)
ON CONFLICT (namespace, worker_id) DO UPDATE SET last_seen = excluded.last_seen, heartbeats_since = excluded.heartbeats_since`
	sqlJoin = `UPDATE weaver_workers SET name = ?3, ttl = ?4, types = ?5, announced = ?6 WHERE namespace = ?1 AND worker_id = ?2`
)

// Join implements store.Core. In a file it also takes the operating system's lock that shows
// other processes that this process lives. Crash between the two: a lock file without a row,
// which a later Join removes.
func (s *Store) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	w.Connection = ""
	written, err := s.db.Joining(ctx, ns, &w)
	if err != nil {
		return err
	}
	err = s.write(ctx, ns, 1, func(t *Tx) error {
		t.fx.Notice.Changed = true
		if err := t.seen(w.ID, w.TTL); err != nil {
			return err
		}
		err := t.stmt(sqlJoin).Text(1, ns).Text(2, string(w.ID)).Text(3, w.Name).Duration(4, w.TTL).JSON(5, w.Types).JSON(6, w.Announcement).Run()
		if err == nil && written != nil {
			err = written(t)
		}
		return err
	})
	if err == nil {
		s.db.Joined(ctx)
	}
	return err
}

const sqlLeave = `DELETE FROM weaver_workers WHERE namespace = ?1 AND worker_id = ?2`

// Leave implements store.Core.
func (s *Store) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	err := s.write(ctx, ns, 1, func(t *Tx) error {
		t.fx.Notice.Changed = true
		return t.stmt(sqlLeave).Text(1, ns).Text(2, string(id)).Run()
	})
	if err == nil {
		// Only now: without its row no process asks whether this process lives.
		s.db.Left(ns, id)
	}
	return err
}

const (
	// No expiry test: an expired lease that no reaper took may be renewed.
	sqlBeat = `
UPDATE weaver_tasks SET lease_expires_at = CASE WHEN lease_expires_at > ?5 THEN lease_expires_at ELSE ?5 END
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

	sqlCancelAsked = `
SELECT cancel_kind, cancel_by, cancel_reason FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND cancel_requested <> 0`
)

// Heartbeat implements store.Core. It takes precedence over all waiting writes.
func (s *Store) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	beats := make([]store.Beat, len(req.Leases))
	err := s.db.Write(ctx, ns, Op{Weight: len(req.Leases), Urgent: true, Run: func(t *Tx) error {
		if err := t.seen(req.Worker, req.TTL); err != nil {
			return err
		}
		if t.bulk != nil {
			return t.beatAll(req.Leases, t.mic+req.TTL.Microseconds(), beats)
		}
		for i := range req.Leases {
			var err error
			if beats[i], err = t.beat(&req.Leases[i], t.mic+req.TTL.Microseconds()); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return beats, nil
}

// seen records a sign of life of a worker.
func (t *Tx) seen(id store.WorkerID, ttl time.Duration) error {
	w, err := t.worker(id)
	if err != nil {
		return err
	}
	if w == nil {
		w = &rules.Worker{TTL: ttl}
	}
	seen := w.Seen(ttl, t.at)
	return t.stmt(sqlSeen).Text(1, t.ns).Text(2, string(id)).Duration(3, seen.TTL).Time(4, seen.LastSeen).Time(5, seen.Since).Run()
}

// Announce records a sign of life of a worker with a row, and always changes LastSeen. A
// process that read the row before sees the change.
func (t *Tx) Announce(id store.WorkerID) error {
	w, err := t.worker(id)
	if err != nil || w == nil {
		return err
	}
	seen := w.Seen(w.TTL, t.at)
	if seen.LastSeen.Equal(w.LastSeen) {
		seen.LastSeen = seen.LastSeen.Add(time.Microsecond)
	}
	return t.stmt(sqlSeen).Text(1, t.ns).Text(2, string(id)).Duration(3, seen.TTL).Time(4, seen.LastSeen).Time(5, seen.Since).Run()
}

// beatAll extends leases in one statement, without waiting for locked rows.
func (t *Tx) beatAll(leases []task.Lease, until int64, beats []store.Beat) error {
	var ours []task.Lease
	var at []int
	for i := range leases {
		ok, err := t.valid(&leases[i])
		if err != nil {
			return err
		}
		if beats[i] = (store.Beat{Lost: !ok}); ok {
			ours, at = append(ours, leases[i]), append(at, i)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	got, err := t.bulk.Beat(t, ours, until)
	for i := range got {
		beats[at[i]] = got[i]
	}
	return err
}

func (t *Tx) beat(l *task.Lease, until int64) (store.Beat, error) {
	if ok, err := t.valid(l); err != nil || !ok {
		return store.Beat{Lost: true}, err
	}
	n, err := t.stmt(sqlBeat).Text(1, t.ns).ID(2, &l.Task).Int(3, l.Epoch).Lease(4, &l.ID).Int(5, until).Exec()
	if err != nil || n == 0 {
		// There is one writer, so no other holds the row: the lease is lost.
		return store.Beat{Lost: err == nil}, err
	}
	var b store.Beat
	st := t.stmt(sqlCancelAsked).Text(1, t.ns).ID(2, &l.Task)
	if st.One() {
		b = store.Beat{Cancel: task.ErrorKind(st.ColName(0)), By: st.ColText(1), Reason: st.ColText(2)}
	}
	return b, st.Done()
}
