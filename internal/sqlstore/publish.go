package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sqlUnsentOfLane reads the first due rows of a lane, whether sent or not.
const sqlUnsentOfLane = `
SELECT available_at, task_id, sent_until, attempts, last_error FROM weaver_outbox_events
WHERE namespace = ?1 AND queue = ?2 AND task_type = ?3 AND lane_group = '' AND priority = ?4 AND available_at <= ?5 AND available_at >= ?6
ORDER BY available_at, task_id LIMIT ?7`

var (
	// sqlLockSent reads the marks of dispatch rows.
	sqlLockSent = newIDSQL(func(in string) string {
		return `SELECT o.task_id, o.sent_until FROM weaver_outbox_events o WHERE o.namespace = ?1 AND o.task_id ` + in
	})

	sqlMarkSent = newChunkSQL(func(n int) string {
		return `UPDATE weaver_outbox_events SET sent_until = ?2, attempts = attempts + 1 WHERE namespace = ?1 AND task_id IN (` + params(3, n) + `)`
	})

	sqlSetSent = newChunkSQL(func(n int) string {
		return `UPDATE weaver_outbox_events SET sent_until = ?2, last_error = ?3 WHERE namespace = ?1 AND task_id IN (` + params(4, n) + `)`
	})
)

// Publish implements store.Ops.
func (s *Store) Publish(ctx context.Context, ns string, req store.PublishRequest) (store.PublishResult, error) {
	if req.Hold <= 0 {
		req.Hold = store.DefaultPublishHold
	}
	var got store.PublishResult
	err := s.write(ctx, ns, max(1, req.Limit, len(req.Pushed)), func(t *Tx) (err error) {
		if err := t.sent(req.Pushed); err != nil || req.Limit <= 0 {
			return err
		}
		got, err = t.unsent(&req)
		return err
	})
	if err != nil {
		return store.PublishResult{}, err
	}
	return got, nil
}

// unsentRow is a due row without a mark.
type unsentRow struct {
	store.UnsentTask
	due int64
}

func (t *Tx) unsent(req *store.PublishRequest) (store.PublishResult, error) {
	queues, types, err := t.pausedSets()
	if err != nil {
		return store.PublishResult{}, err
	}
	stale, err := t.readLanes()
	if err != nil {
		return store.PublishResult{}, err
	}
	next := int64(lane.Empty)
	if stale > 0 {
		next = t.mic + stale.Microseconds()
	}
	lanes := t.db.Lanes().Lanes(t.ns, func(k lane.Key) bool { return !queues[k.Queue] && !types[k.Type] })
	var found []unsentRow
	from := 0 // rows of the priority of the last lane
	for i := range lanes {
		l := &lanes[i]
		if i > 0 && l.Priority != lanes[i-1].Priority {
			sortUnsent(found[from:])
			if from = len(found); from >= req.Limit {
				next = t.mic
				break
			}
		}
		if l.Bound > t.mic {
			next = min(next, l.Bound)
			continue
		}
		later, err := t.unsentOfLane(l, &found)
		if err != nil {
			return store.PublishResult{}, err
		}
		next = min(next, later)
	}
	sortUnsent(found[from:])
	if len(found) > req.Limit {
		found, next = found[:req.Limit], t.mic
	}
	res := store.PublishResult{Next: -1}
	if len(found) > 0 {
		if err := t.markSent(req, found, &res); err != nil {
			return store.PublishResult{}, err
		}
		if len(res.Tasks) < len(found) { // locked by a claim, or by another publisher
			next = min(next, t.mic+req.Hold.Microseconds())
		}
	}
	if next != lane.Empty {
		res.Next = time.Duration(next-t.mic) * time.Microsecond
	}
	return res, nil
}

func sortUnsent(rows []unsentRow) {
	slices.SortFunc(rows, func(a, b unsentRow) int { return cmp.Or(cmp.Compare(a.due, b.due), a.Task.Compare(b.Task)) })
}

// unsentOfLane appends the unsent ones of the first due rows of a lane. It returns the time at which
// another row of the lane is to be sent.
func (t *Tx) unsentOfLane(l *lane.State, found *[]unsentRow) (next int64, err error) {
	next = lane.Empty
	n := 0
	st := t.stmt(sqlUnsentOfLane).Text(1, t.ns).Text(2, l.Queue).Text(3, l.Type).Int(4, l.Priority).Int(5, t.mic).Int(6, l.Bound).Int(7, rules.PublishLooks)
	for ; st.Next(); n++ {
		if until := st.ColInt(2); until > t.mic {
			next = min(next, until)
			continue
		}
		*found = append(*found, unsentRow{store.UnsentTask{Task: st.ColID(1), Queue: l.Queue, Type: l.Type, Attempts: int(st.ColInt(3)) + 1}, st.ColInt(0)})
	}
	if err := st.Done(); err != nil || n == rules.PublishLooks {
		return next, err
	}
	st = t.stmt(sqlFutureOfLane).Text(1, t.ns).Text(2, l.Queue).Text(3, l.Type).Int(4, l.Priority).Int(5, t.mic)
	if st.One() {
		next = min(next, st.ColInt(0))
	}
	return next, st.Done()
}

// markSent marks the rows that are unlocked and still unsent.
func (t *Tx) markSent(req *store.PublishRequest, found []unsentRow, res *store.PublishResult) error {
	ids := make([]task.ID, len(found))
	for i := range found {
		ids[i] = found[i].Task
	}
	until, err := t.lockSent(ids)
	if err != nil {
		return err
	}
	mark := t.mic + req.Hold.Microseconds()
	ids = ids[:0]
	for i := range found {
		if was, locked := until[found[i].Task]; locked && was <= t.mic {
			ids = append(ids, found[i].Task)
			res.Tasks = append(res.Tasks, found[i].UnsentTask)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	res.Mark = sqlstmt.Instant(mark)
	if t.bulk != nil {
		return t.bulk.MarkSent(t, ids, mark)
	}
	return inChunks(ids, func(chunk []task.ID) error {
		st := t.stmt(sqlMarkSent[len(chunk)]).Text(1, t.ns).Int(2, mark)
		for i := range chunk {
			st.ID(3+i, &chunk[i])
		}
		return st.Run()
	})
}

// lockSent locks the dispatch rows of tasks, without waiting for locked ones, and returns the end of
// the mark of each.
func (t *Tx) lockSent(ids []task.ID) (until map[task.ID]int64, err error) {
	until = make(map[task.ID]int64, len(ids))
	err = t.lockedRows(sqlLockSent, Bulk.LockSent, ids, func(st *sqlstmt.Stmt) error {
		for st.Next() {
			until[st.ColID(0)] = st.ColInt(1)
		}
		return st.Done()
	})
	return until, err
}

// lockedRows calls fn with statements over the dispatch rows of tasks. Where transactions run
// together, bulk locks the rows and skips locked ones; a database with one writer needs no lock.
func (t *Tx) lockedRows(sqls chunkSQL, bulk func(Bulk, *Tx, []task.ID) *sqlstmt.Stmt, ids []task.ID, fn func(*sqlstmt.Stmt) error) error {
	if t.bulk != nil && len(ids) > 0 {
		return fn(bulk(t.bulk, t, ids))
	}
	return t.byIDs(sqls, ids, func(st *sqlstmt.Stmt, _ []task.ID) error { return fn(st) })
}

// sent records outcomes of pushes.
func (t *Tx) sent(rows []store.Pushed) error {
	if len(rows) == 0 {
		return nil
	}
	type group struct {
		span time.Duration
		err  string
	}
	ids := make([]task.ID, len(rows))
	for i := range rows {
		ids[i] = rows[i].Task
	}
	until, err := t.lockSent(ids)
	if err != nil {
		return err
	}
	groups := make(map[group][]task.ID)
	for i := range rows {
		r := &rows[i]
		// A row without the mark was written again, or is with another publisher.
		if was, locked := until[r.Task]; locked && was != 0 && sqlstmt.Instant(was).Equal(r.Mark) {
			delete(until, r.Task) // named once
			g := group{r.For, r.Error}
			groups[g] = append(groups[g], r.Task)
		}
	}
	for g, ids := range groups {
		if err := t.setSent(ids, t.mic+g.span.Microseconds(), g.err); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) setSent(ids []task.ID, until int64, lastError string) error {
	if t.bulk != nil {
		return t.bulk.SetSent(t, ids, until, lastError)
	}
	return inChunks(ids, func(chunk []task.ID) error {
		st := t.stmt(sqlSetSent[len(chunk)]).Text(1, t.ns).Int(2, until).OrNull(3, lastError)
		for i := range chunk {
			st.ID(4+i, &chunk[i])
		}
		return st.Run()
	})
}
