package soak_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// slots is how many handlers a worker runs at once.
const slots = 8

// worker is one life of a worker process.
type worker struct {
	log    *stepLog
	pause  time.Duration
	db     *sqlite.DB
	store  store.Store
	gauge  *gauge
	visits *visits
	effect func(ctx context.Context, tx *sql.Tx, task string, s stamp) error
}

// defects are the ways in which a test breaks a worker on purpose.
type defects struct {
	store  func(s store.Store) store.Store
	effect func(db *sqlite.DB) func(ctx context.Context, tx *sql.Tx, task string, s stamp) error
}

var noDefects defects

func databasePath(dir string) string { return filepath.Join(dir, "weaver.db") }

// newWorker does what a worker does before it runs.
func newWorker(ctx context.Context, o childConfig, l defects) (*worker, error) {
	log, err := openStepLog(o.Dir, o.Life)
	if err != nil {
		return nil, err
	}
	log.moment = o.Plan.Lines
	log.process(lineProcess, phaseUp)
	g, err := newGauge(o.Dir, o.Life)
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	log.process(lineProcess, phaseOpen)
	w := &worker{log: log, pause: o.Pause, db: db, gauge: g, effect: insertEffect}
	if w.visits, err = newVisits(o, db); err != nil {
		return nil, err
	}
	w.store = (&probe{plan: o.Plan, gauge: g, log: log}).store(db)
	if l.store != nil {
		w.store = l.store(w.store)
	}
	if l.effect != nil {
		w.effect = l.effect(db)
	}
	return w, nil
}

// run works until ctx ends, drains, and closes everything.
func (w *worker) run(ctx context.Context) error {
	eng, err := weaver.New(w.store, weaver.Config{
		Handlers: w.handlers(), Concurrency: slots, Logger: stderrLog(),
		// Every process is killed. Three kills in a row before a task completes a
		// step are not caused by the task here, but the engine cannot distinguish
		// them from those of a task that kills its workers.
		CrashBudget: -1,
	})
	if err != nil {
		return err
	}
	visited := make(chan error, 1)
	go func() { visited <- w.visits.run(ctx) }()
	runErr := eng.Run(ctx)
	if errors.Is(runErr, context.Canceled) {
		runErr = nil // it was asked to end before it had begun, and reports that
	}
	runErr = errors.Join(runErr, <-visited)
	w.log.process(lineProcess, phaseLeft)
	closeErr := w.db.Close()
	w.log.process(lineProcess, phaseEnd)
	return errors.Join(runErr, closeErr, w.gauge.close(), w.log.close())
}

// stderrLog is for warnings and errors; check looks for errors in it.
func stderrLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// sqlTables are the user's. Nothing in them is unique: if something is
// written twice, it is to be seen.
const sqlTables = `
CREATE TABLE IF NOT EXISTS effects (task TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL, life INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (n INTEGER NOT NULL, task TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS visits (token TEXT NOT NULL, task TEXT NOT NULL);`

// busy is how long to wait for the write lock: longer than by default, because
// tests run on busy machines, and shorter than a lease.
const busy = 20 * time.Second

// openDatabase opens the file as any program does at its start: the first process
// makes the tables.
func openDatabase(ctx context.Context, dir string) (*sqlite.DB, error) {
	db, err := sqlite.Open(ctx, databasePath(dir), sqlite.BusyTimeout(busy))
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := db.DB().ExecContext(ctx, sqlTables); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
