package notices

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

const (
	answerWithin = 5 * time.Second  // otherwise the session is broken
	askEvery     = 10 * time.Second // interval of pings of a silent session
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// keep keeps the session until ctx ends, or until Close with nothing left to send.
func (n *Notices) keep(ctx context.Context) error {
	defer close(n.ended)
	pause := firstPause
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, 2*answerWithin)
		c, err := n.cfg.Dial(call)
		cancel()
		if err == nil {
			begun := time.Now()
			err = n.serve(ctx, &session{n: n, c: c})
			closeConn(c)
			if err == nil {
				return nil
			}
			if time.Since(begun) > longestPause {
				pause = firstPause
			}
		}
		if errors.Is(err, ErrNotDirect) {
			pause = longestPause
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, longestPause)
	}
	return nil
}

func closeConn(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // it may be broken
}

// session is one session with the server.
type session struct {
	n      *Notices
	c      *pgx.Conn
	asked  time.Time // when the server last answered
	failed time.Time // when it last refused a statement
}

// serve works until the session breaks. It returns nil when no work is left or expected.
func (n *Notices) serve(ctx context.Context, s *session) error {
	n.forget()
	if err := s.exec(ctx, `SELECT set_config('search_path', $1, false), set_config('synchronous_commit', 'off', false), set_config('statement_timeout', '5s', false)`,
		pgx.Identifier{n.cfg.Schema}.Sanitize()+", pg_temp"); err != nil {
		return err
	}
	for {
		todo := n.next(s)
		if todo.end {
			return nil
		}
		if err := s.do(ctx, &todo); err != nil {
			return err
		}
		if err := s.wait(ctx, todo.at); err != nil {
			return err
		}
	}
}

// forget resets the state of the previous session. The rows of workers are written again,
// because they may have been recreated.
func (n *Notices) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.spaces {
		s.heard, s.locked = false, false
		for _, w := range s.workers {
			if w.says {
				w.says, w.idle = false, true
			}
		}
	}
}

// todo is the current work of the session.
type todo struct {
	listen, unlisten []string // namespaces
	lock, unlock     []string
	rows             []row
	tell             []telling
	own              []string // workers of this process
	ask              bool
	end              bool      // no work is left or expected
	at               time.Time // time of the next work
}

// row is the wanted content of a worker's row.
type row struct {
	ns   string
	id   store.WorkerID
	idle bool
}

type telling struct {
	ns   string
	news news
}

// next returns the current work.
func (n *Notices) next(s *session) (do todo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.poked = false
	now := time.Now()
	do.at = s.asked.Add(askEvery)
	if !do.at.After(now) {
		do.ask, do.at = true, now.Add(askEvery)
	}
	tellAt := later(n.told.Add(tellEvery), s.failed.Add(sayEvery))
	pending := false
	for ns, sp := range n.spaces {
		unused := sp.left.Add(keepFor)
		if sp.listeners == 0 && (sp.heard || sp.locked) && unused.After(now) {
			do.at = earlier(do.at, unused)
		}
		keep := unused.After(now)
		differ(sp.listeners > 0, keep, &sp.heard, ns, &do.listen, &do.unlisten)
		differ(len(sp.awaiting) > 0, keep, &sp.locked, ns, &do.lock, &do.unlock)
		for id, w := range sp.workers {
			do.own = append(do.own, string(id))
			switch idle, at := w.change(); {
			case at.IsZero():
			case at.After(now):
				do.at = earlier(do.at, at)
			default:
				w.wrote = now
				do.rows = append(do.rows, row{ns, id, idle})
			}
		}
		switch {
		case sp.news.empty():
		case tellAt.After(now):
			pending, do.at = true, earlier(do.at, tellAt)
		default:
			do.tell = append(do.tell, telling{ns, sp.news})
			sp.news, n.told = news{}, now
		}
	}
	do.end = n.closing && !pending && len(do.tell) == 0
	return do
}

// differ adds a name to the names to begin or to end, and records the change. If the change
// fails the session ends.
func differ(want, keep bool, is *bool, ns string, begin, end *[]string) {
	switch {
	case want && !*is:
		*begin, *is = append(*begin, ns), true
	case !want && *is && !keep:
		*end, *is = append(*end, ns), false
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// do does the work. Workers claim once more when it is certain that they receive later
// notifications.
func (s *session) do(ctx context.Context, do *todo) error {
	for _, ns := range do.listen {
		if err := s.exec(ctx, "LISTEN "+pgx.Identifier{Channel(s.n.cfg.Schema, ns)}.Sanitize()); err != nil {
			return err
		}
	}
	for _, ns := range do.unlisten {
		if err := s.exec(ctx, "UNLISTEN "+pgx.Identifier{Channel(s.n.cfg.Schema, ns)}.Sanitize()); err != nil {
			return err
		}
	}
	for _, ns := range do.lock {
		if err := s.exec(ctx, `SELECT pg_advisory_lock_shared($1)`, lockOf(s.n.cfg.Schema, ns)); err != nil {
			return err
		}
	}
	for _, ns := range do.unlock {
		if err := s.exec(ctx, `SELECT pg_advisory_unlock_shared($1)`, lockOf(s.n.cfg.Schema, ns)); err != nil {
			return err
		}
	}
	for _, ns := range append(do.listen, do.lock...) {
		// Earlier notifications are unknown here.
		s.n.cfg.Listeners.Notify(ns, store.Notice{External: true})
	}
	if err := s.tell(ctx, do); err != nil {
		return err
	}
	if err := s.write(ctx, do.rows); err != nil {
		return err
	}
	if do.ask {
		return s.exec(ctx, `SELECT 1`)
	}
	return nil
}

// exec runs a statement. An error of the server only causes a pause, because the schema may be
// created later.
func (s *session) exec(ctx context.Context, sql string, args ...any) error {
	_, err := s.run(ctx, sql, args...)
	return err
}

func (s *session) run(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	call, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	tag, err := s.c.Exec(call, sql, args...)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && !s.c.IsClosed() {
		s.failed, err = time.Now(), nil
	}
	if err == nil {
		s.asked = time.Now()
	}
	return tag.RowsAffected(), err
}

const sqlSay = `
UPDATE weaver_workers SET idle_since = CASE WHEN $3 THEN coalesce(idle_since, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) END
WHERE namespace = $1 AND worker_id = $2`

// write writes the rows of workers.
func (s *session) write(ctx context.Context, rows []row) error {
	for _, r := range rows {
		n, err := s.run(ctx, sqlSay, r.ns, string(r.id), r.idle)
		if err != nil {
			return err
		}
		if s.n.said(&r, n > 0) {
			s.n.cfg.Listeners.Notify(r.ns, store.Notice{Due: true})
		}
	}
	return nil
}

// said records the current content of a worker's row, which may be missing. It reports whether
// the worker must claim once more.
func (n *Notices) said(r *row, written bool) (look bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.of(r.ns).workers[r.id]
	if w == nil {
		return false
	}
	before := w.says
	w.says = r.idle && written
	if written && !r.idle {
		w.idle = w.since.IsZero() // otherwise it found nothing meanwhile
	}
	return w.says && !before
}

// If an exclusive lock is not available, another session holds it, shared.
const sqlTell = `
SELECT pg_notify(t.channel, CASE WHEN t.awaited THEN t.long ELSE t.short END) FROM (
  SELECT n.channel, n.short, n.long, n.cancels,
    CASE WHEN n.ids THEN NOT pg_try_advisory_xact_lock(n.lock) ELSE false END AS awaited,
    n.due AND EXISTS (SELECT 1 FROM weaver_workers w WHERE w.namespace = n.namespace AND w.idle_since IS NOT NULL
      AND w.last_seen + 2 * w.ttl > extract(epoch FROM clock_timestamp()) * 1000000 AND w.worker_id <> ALL ($1::text[])) AS idle
  FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bool[], $8::bool[], $9::bool[])
    AS n (namespace, channel, lock, short, long, due, ids, cancels) OFFSET 0) t
WHERE t.idle OR t.awaited OR t.cancels`

// tell notifies the other processes, in one statement for all namespaces.
func (s *session) tell(ctx context.Context, do *todo) error {
	if len(do.tell) == 0 {
		return nil
	}
	var spaces, channels, shorts, longs []string
	var locks []int64
	var due, named, cancels []bool
	for i := range do.tell {
		t := &do.tell[i]
		short, long := t.news.payloads()
		spaces, channels = append(spaces, t.ns), append(channels, Channel(s.n.cfg.Schema, t.ns))
		locks = append(locks, lockOf(s.n.cfg.Schema, t.ns))
		shorts, longs = append(shorts, short), append(longs, long)
		due, named, cancels = append(due, t.news.due), append(named, t.news.named()), append(cancels, len(t.news.cancels.list) > 0)
	}
	if do.own == nil {
		do.own = []string{}
	}
	return s.exec(ctx, sqlTell, do.own, spaces, channels, locks, shorts, longs, due, named, cancels)
}

// wait receives notifications until there is work.
func (s *session) wait(ctx context.Context, until time.Time) error {
	for {
		waiting, cancel := context.WithDeadline(ctx, until)
		s.n.mu.Lock()
		poked := s.n.poked
		if s.n.interrupt = cancel; poked {
			cancel()
		}
		s.n.mu.Unlock()
		got, err := s.c.WaitForNotification(waiting)
		s.n.mu.Lock()
		s.n.interrupt = nil
		s.n.mu.Unlock()
		over := waiting.Err() != nil
		cancel()
		if got != nil {
			s.hear(got)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.c.IsClosed():
			return errors.Join(errors.New("the session of the notices was lost"), err)
		case got == nil && over:
			return nil
		case got == nil && err != nil:
			return err
		}
	}
}

// hear passes a notice of another process to the listeners.
func (s *session) hear(got *pgconn.Notification) {
	if got.PID == s.c.PgConn().PID() {
		return // sent by this session
	}
	s.asked = time.Now()
	heard := notice(got.Payload)
	heard.Remote = true
	for _, ns := range s.n.listened() {
		if Channel(s.n.cfg.Schema, ns) == got.Channel {
			s.n.cfg.Listeners.Notify(ns, heard)
		}
	}
}
