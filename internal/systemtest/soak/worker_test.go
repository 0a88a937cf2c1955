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

// slots is the number of concurrent handlers of a worker.
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

// newWorker starts a worker up to the run of its engine.
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
		// Every process is killed. The tasks do not cause three consecutive kills without a completed step, but the
		// engine cannot distinguish these from the kills of a poison task.
		CrashBudget: -1,
	})
	if err != nil {
		return err
	}
	visited := make(chan error, 1)
	go func() { visited <- w.visits.run(ctx) }()
	runErr := eng.Run(ctx)
	if errors.Is(runErr, context.Canceled) {
		runErr = nil // it was asked to end before it began, and reports that
	}
	runErr = errors.Join(runErr, <-visited)
	w.log.process(lineProcess, phaseLeft)
	closeErr := w.db.Close()
	w.log.process(lineProcess, phaseEnd)
	return errors.Join(runErr, closeErr, w.gauge.close(), w.log.close())
}

// stderrLog logs warnings and errors; the check searches it for errors.
func stderrLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// sqlTables are the user's tables. They have no unique columns, so that duplicate writes show.
const sqlTables = `
CREATE TABLE IF NOT EXISTS effects (task TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL, life INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (n INTEGER NOT NULL, task TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS visits (token TEXT NOT NULL, task TEXT NOT NULL);`

// busy is the timeout of the write lock: longer than the default, because test machines are busy, and shorter than a
// lease.
const busy = 20 * time.Second

// openDatabase opens the file as any program does at its start: the first process creates the tables.
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
