package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
)

// Options configure Workers.
type Options struct {
	// Server opens sessions; nil means that sessions are impossible, as through a pooler.
	Server *Server
	// Rows runs a statement with text parameters, on any connection, and returns the rows as
	// texts.
	Rows func(ctx context.Context, sql string, params ...string) ([][][]byte, error)
	// Announce records a worker as seen; see Config.
	Announce func(ctx context.Context, c Conn, ns string, id store.WorkerID, p Promise) error
	// Withdraw withdraws its promise; see Config.
	Withdraw func(ctx context.Context, ns string, id store.WorkerID, withdrawals int) error
	// Found is called with each namespace that has dead workers; see ObserverConfig.
	Found  func(ns string)
	Folder *workerlock.Folder // see OpenFolder; may be nil
	Asked  bool               // see ObserverConfig
	Log    *slog.Logger
}

// Workers proves deaths of workers: of this process's workers to other processes, and of
// others to this process.
type Workers struct {
	opts     Options
	keeper   *Keeper // nil: no sessions
	observer *Observer

	mu   sync.Mutex
	mine map[key]bool
}

// OpenFolder returns the folder for the worker locks of a store, named by the store's
// generation. It is below dir, or if dir is "" in the common folder of this user's programs.
func OpenFolder(dir, generation string) (*workerlock.Folder, error) {
	if !workerlock.Supported {
		return nil, nil
	}
	if dir == "" {
		dir = workerlock.DefaultDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder for worker locks: %w", err)
	}
	if err := workerlock.MakePrivate(dir); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(generation))
	return workerlock.In(filepath.Join(dir, hex.EncodeToString(sum[:8]))), nil
}

// Open returns Workers, which must be closed.
func Open(o Options) *Workers {
	w := &Workers{opts: o, mine: make(map[key]bool)}
	dial := func(context.Context) (Looker, error) { return rowsLooker{o.Rows}, nil }
	if o.Server != nil {
		w.keeper = New(Config{Dial: o.Server.Dial, Announce: o.Announce, Withdraw: o.Withdraw, Log: o.Log})
		dial = o.Server.Observe
	}
	w.observer = Observe(ObserverConfig{Dial: dial, Own: w.own, Found: o.Found, Folder: o.Folder, Asked: o.Asked, Log: o.Log})
	return w
}

// Close ends the sessions and releases the locks. Workers that did not leave look dead from
// then on.
func (w *Workers) Close() error {
	err := w.observer.Close()
	if w.keeper != nil {
		err = errors.Join(err, w.keeper.Close())
	}
	w.opts.Folder.Close()
	return err
}

func (w *Workers) own(ns string, id store.WorkerID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mine[key{ns, id}]
}

// Proof is the content of a worker's row that lets others prove its death.
type Proof struct {
	Promise
	Place workerlock.Place
}

// Join takes the locks of a worker, before its row is written. It may be called again. Without
// a session, or a lock on this machine, the worker's death is found later. store.ErrConflict
// means that another process has joined as this worker.
func (w *Workers) Join(ctx context.Context, ns string, info *store.WorkerInfo) (Proof, error) {
	var p Proof
	err := w.opts.Folder.Hold(ctx, ns, info.ID)
	switch {
	case errors.Is(err, store.ErrConflict):
		return p, err
	case err != nil:
		w.opts.Log.Warn("hold the lock of this worker on this machine: its death is found later", "error", err)
	}
	p.Place = w.opts.Folder.Place(ns, info.ID)
	if w.keeper != nil && info.SessionGrace > 0 {
		err := w.keepSession(ctx, ns, info)
		switch {
		case err == nil:
			p.Promise = w.keeper.promise(ns, info.ID)
		case errors.Is(err, ErrHeld):
			w.opts.Folder.Release(ns, info.ID)
			return Proof{}, fmt.Errorf("%w: %w", store.ErrConflict, err)
		case ctx.Err() != nil:
			return Proof{}, err
		default:
			w.opts.Log.Warn("keep a session for this worker: its death is found on its machine only, or when its leases expire", "error", err)
		}
	}
	w.mu.Lock()
	w.mine[key{ns, info.ID}] = true
	w.mu.Unlock()
	w.observer.Watch(ns)
	return p, nil
}

// joinLimit is a joining worker's maximum wait for its session.
const joinLimit = 3 * time.Second

// keepSession opens the session of a worker. It takes at most half of the time, because a
// server that does not answer there may answer elsewhere.
func (w *Workers) keepSession(ctx context.Context, ns string, info *store.WorkerInfo) error {
	ctx, cancel := context.WithTimeout(ctx, part(ctx, joinLimit))
	defer cancel()
	return w.keeper.Join(ctx, ns, info.ID, info.SessionGrace)
}

const sqlProof = `
UPDATE weaver_workers SET lock_host = ?3, lock_path = ?4, lock_file = ?5 WHERE namespace = ?1 AND worker_id = ?2`

// Write writes the result of Join into the worker's row, in the transaction that writes the
// row.
func (p *Proof) Write(t *sqlstore.Tx, ns string, id store.WorkerID) error {
	err := t.Conn().Stmt(sqlProof).Text(1, ns).Text(2, string(id)).Text(3, p.Place.Host).Text(4, p.Place.Path).Text(5, p.Place.File).Run()
	if err != nil || p.Grace <= 0 {
		return err
	}
	return p.Promise.Write(t, ns, id)
}

// A negative grace is the number of withdrawals.
const (
	sqlPromise  = `UPDATE weaver_workers SET session_grace = ?3 WHERE namespace = ?1 AND worker_id = ?2 AND session_grace >= ?4`
	sqlWithdraw = `UPDATE weaver_workers SET session_grace = ?3 WHERE namespace = ?1 AND worker_id = ?2`
)

// Write writes a promise into a worker's row, unless it was withdrawn meanwhile.
func (p Promise) Write(t *sqlstore.Tx, ns string, id store.WorkerID) error {
	return t.Conn().Stmt(sqlPromise).Text(1, ns).Text(2, string(id)).Duration(3, p.Grace).Int(4, -int64(p.Withdrawals)).Run()
}

// WriteWithdrawal records the withdrawal of a promise in a worker's row.
func WriteWithdrawal(t *sqlstore.Tx, ns string, id store.WorkerID, withdrawals int) error {
	return t.Conn().Stmt(sqlWithdraw).Text(1, ns).Text(2, string(id)).Int(3, -int64(withdrawals)).Run()
}

// The paths of all workers, of any namespace and machine.
const sqlPaths = `SELECT lock_path FROM weaver_workers WHERE lock_path <> ''`

// Joined removes lock files that prove nothing, after a worker got its row.
func (w *Workers) Joined(ctx context.Context) {
	if w.opts.Folder == nil {
		return
	}
	rows, err := w.opts.Rows(ctx, sqlPaths)
	if err != nil {
		return // the next call does it
	}
	known := make(map[string]bool, len(rows))
	for _, r := range rows {
		known[string(r[0])] = true
	}
	w.opts.Folder.Sweep(ctx, known)
}

// Left releases the locks of a worker after its row was deleted. Before that its free locks
// would prove its death.
func (w *Workers) Left(ctx context.Context, ns string, id store.WorkerID) {
	if w.keeper != nil {
		w.keeper.Leave(ctx, ns, id)
	}
	w.opts.Folder.Release(ns, id)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mine, key{ns, id})
}

// Kill makes the process of a worker look dead on this machine. It is for tests.
func (w *Workers) Kill(id store.WorkerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.mine {
		if k.id == id {
			w.opts.Folder.Drop(k.ns, id)
			delete(w.mine, k)
		}
	}
}

// Session implements store.Ops.
func (w *Workers) Session(ns string, id store.WorkerID) (store.Session, bool) {
	if w.keeper == nil {
		return store.Session{}, false
	}
	return w.keeper.Session(ns, id)
}

// BeforeClaim returns when leases granted now can be relied on; see Ready.
func (w *Workers) BeforeClaim(ctx context.Context) error {
	if w.keeper == nil {
		return nil
	}
	return w.keeper.Ready(ctx)
}

// Leased records that leases may be held for d from now on. It is called after each claim and
// each heartbeat with leases.
func (w *Workers) Leased(d time.Duration) {
	if w.keeper != nil {
		w.keeper.Leased(d)
	}
}

// Heartbeat runs fn on the connection of the session. ErrDown means that there is no session,
// now or at all; then fn must run elsewhere.
func (w *Workers) Heartbeat(ctx context.Context, ns string, id store.WorkerID, fn func(ctx context.Context, c Conn) error) error {
	if _, ok := w.Session(ns, id); !ok {
		return ErrDown
	}
	return w.keeper.Run(ctx, fn)
}

// Dead returns the dead workers of a namespace; see Observer.
func (w *Workers) Dead(ctx context.Context, ns string) *Dead { return w.observer.Dead(ctx, ns) }

// LooksDead returns the workers whose locks on this machine look free. It writes nothing.
func (w *Workers) LooksDead(ctx context.Context, ns string, workers []store.WorkerID) (map[store.WorkerID]bool, error) {
	return looksDead(ctx, w.opts.Rows, w.opts.Folder, ns, workers)
}

// Visitor is the view of a process without workers.
type Visitor struct {
	Rows func(ctx context.Context, sql string, params ...string) ([][][]byte, error) // see Options
}

// LooksDead is Workers.LooksDead.
func (v Visitor) LooksDead(ctx context.Context, ns string, workers []store.WorkerID) (map[store.WorkerID]bool, error) {
	return looksDead(ctx, v.Rows, workerlock.In(""), ns, workers)
}

func looksDead(ctx context.Context, rows func(ctx context.Context, sql string, params ...string) ([][][]byte, error), folder *workerlock.Folder, ns string, workers []store.WorkerID) (map[store.WorkerID]bool, error) {
	asked := make(map[store.WorkerID]bool, len(workers))
	for _, id := range workers {
		asked[id] = true
	}
	found, err := rows(ctx, sqlLook, namesJSON([]string{ns}))
	if err != nil {
		return nil, err
	}
	dead := make(map[store.WorkerID]bool)
	for _, r := range found {
		s, err := parseSeen(r)
		if err != nil {
			return nil, err
		}
		if asked[s.ID] && folder.LooksDeadAt(ns, s.ID, s.Place) {
			dead[s.ID] = true
		}
	}
	return dead, nil
}

// rowsLooker looks only at locks on this machine, on any connection.
type rowsLooker struct {
	rows func(ctx context.Context, sql string, params ...string) ([][][]byte, error)
}

// Look implements Looker.
func (l rowsLooker) Look(ctx context.Context, namespaces []string) ([]Seen, error) {
	rows, err := l.rows(ctx, sqlLook, namesJSON(namespaces))
	if err != nil {
		return nil, err
	}
	seen := make([]Seen, len(rows))
	for i, r := range rows {
		if seen[i], err = parseSeen(r); err != nil {
			return nil, err
		}
		seen[i].Grace = 0 // locks of other sessions cannot be compared between looks
	}
	return seen, nil
}

// Close implements Looker.
func (rowsLooker) Close() {}
