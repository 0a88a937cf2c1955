package weaver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// openStore returns the empty store of most tests: SQLite, or with -short the faster memory store. It
// is called in a bubble.
func openStore(t testing.TB) store.Store {
	t.Helper()
	if testing.Short() || underRace {
		return memstore.New()
	}
	return openMemory(t)
}

// everyStore returns an empty store of each kind; with -short, of those without a file.
func everyStore(fx *fixture) []store.Store {
	fx.Helper()
	if testing.Short() {
		return []store.Store{memstore.New(), openMemory(fx)}
	}
	return []store.Store{memstore.New(), openMemory(fx), openFile(fx, filepath.Join(fx.TempDir(), "weaver.db"))}
}

func openMemory(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.OpenMemory(t.Context())
	return ready(t, db, err)
}

// openFile opens a database that other handles, and other processes, can open
// too.
func openFile(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	return ready(t, db, err)
}

func ready(t testing.TB, db *sqlite.DB, err error) *sqlite.DB {
	t.Helper()
	if err == nil {
		err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatalf("open a store: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return db
}

// fixture is the environment of one test: an empty store, a client, and the log of the engines, in a
// bubble with a fake clock.
type fixture struct {
	*testing.T
	store  store.Store
	client *weaver.Client
	log    *logbook
}

// subtest runs fn with a fixture of its own, in a bubble.
func subtest(t *testing.T, name string, fn func(fx *fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, fn) })
}

// inBubble runs fn with a fixture, in a bubble.
func inBubble(t *testing.T, fn func(fx *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fn(newFixture(t, openStore(t)))
	})
}

// sqlSubtest is subtest for tests that need user SQL: SQLite.
func sqlSubtest(t *testing.T, name string, fn func(fx *fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inSQLBubble(t, fn) })
}

// inSQLBubble is inBubble for tests that need SQLite.
func inSQLBubble(t *testing.T, fn func(fx *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fn(newFixture(t, openMemory(t)))
	})
}

func newFixture(t *testing.T, s store.Store) *fixture {
	t.Helper()
	fx := &fixture{T: t, store: s, log: &logbook{}}
	fx.client = fx.newClient()
	return fx
}

func (fx *fixture) newClient() *weaver.Client {
	fx.Helper()
	c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Logger: fx.log.logger()})
	if err != nil {
		fx.Fatalf("NewClient: %v", err)
	}
	return c
}

// engine is a running engine.
type engine struct {
	*weaver.Engine
	stop  func() error  // ends Run and returns its error
	ended chan struct{} // closed when Run has returned
}

// run starts an engine on the fixture's store; runConfig starts one on any.
// The engine is stopped, without an error, when the test ends.
func (fx *fixture) run(handlers ...weaver.Handler) *engine {
	fx.Helper()
	return fx.runConfig(fx.store, weaver.Config{Handlers: handlers})
}

func (fx *fixture) runConfig(s store.Store, cfg weaver.Config) *engine {
	fx.Helper()
	e := fx.start(s, cfg)
	fx.Cleanup(func() {
		if err := e.stop(); err != nil {
			fx.Errorf("Run: %v", err)
		}
	})
	return e
}

// start is runConfig for engines that the test itself stops.
func (fx *fixture) start(s store.Store, cfg weaver.Config) *engine {
	fx.Helper()
	eng := fx.newEngine(s, cfg)
	ctx, cancel := context.WithCancel(fx.Context())
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		done <- eng.Run(ctx)
	}()
	return &engine{Engine: eng, ended: ended, stop: sync.OnceValue(func() error {
		cancel()
		return <-done
	})}
}

func (fx *fixture) newEngine(s store.Store, cfg weaver.Config) *weaver.Engine {
	fx.Helper()
	if cfg.Logger == nil {
		cfg.Logger = fx.log.logger()
	}
	eng, err := weaver.New(s, cfg)
	if err != nil {
		fx.Fatalf("New: %v", err)
	}
	return eng
}

// idle runs all due tasks and returns.
func (fx *fixture) idle(handlers ...weaver.Handler) {
	fx.Helper()
	if err := fx.newEngine(fx.store, weaver.Config{Handlers: handlers}).RunUntilIdle(fx.Context()); err != nil {
		fx.Fatalf("RunUntilIdle: %v", err)
	}
}

// enqueue stores one task.
func enqueue[In, Out any](fx *fixture, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) *weaver.Handle[Out] {
	fx.Helper()
	h, err := typ.Enqueue(fx.Context(), fx.client, in, opts...)
	if err != nil {
		fx.Fatalf("Enqueue: %v", err)
	}
	return h
}

// result waits for a task that must succeed.
func result[Out any](fx *fixture, h *weaver.Handle[Out]) Out {
	fx.Helper()
	out, err := h.Wait(fx.Context())
	if err != nil {
		fx.Fatalf("Wait: %v", err)
	}
	return out
}

// failure waits for a task that must fail or be cancelled.
func failure[Out any](fx *fixture, h *weaver.Handle[Out]) *weaver.TaskError {
	fx.Helper()
	_, err := h.Wait(fx.Context())
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok {
		fx.Fatalf("Wait: %v, want a *weaver.TaskError", err)
	}
	return te
}

// fails is failure without its result.
func fails[Out any](fx *fixture, h *weaver.Handle[Out]) {
	fx.Helper()
	_ = failure(fx, h)
}

// blocked waits for a task that must block.
func blocked[Out any](fx *fixture, h *weaver.Handle[Out]) error {
	fx.Helper()
	_, err := h.Wait(fx.Context())
	if !errors.Is(err, weaver.ErrBlocked) {
		fx.Fatalf("Wait: %v, want an error that is ErrBlocked", err)
	}
	return err
}

// notHere waits until a worker that cannot run the task released an attempt of it, and returns the
// reason.
func notHere[Out any](fx *fixture, h *weaver.Handle[Out]) error {
	fx.Helper()
	for range 100 {
		got, err := fx.client.History(fx.Context(), h.ID())
		if n := len(got.Attempts); err == nil && n > 0 && got.Attempts[n-1].Outcome == task.OutcomeReleased && got.Attempts[n-1].Error != nil {
			equal(fx, "kind", got.Attempts[n-1].Error.Kind, task.KindWorker)
			return errors.New(got.Attempts[n-1].Error.Message)
		}
		time.Sleep(100 * time.Millisecond)
	}
	fx.Fatalf("task %v was not released: %+v", h.ID(), fx.get(h.ID()))
	return nil
}

// blocks is blocked without its result.
func blocks[Out any](fx *fixture, h *weaver.Handle[Out]) {
	fx.Helper()
	_ = blocked(fx, h)
}

func (fx *fixture) get(id weaver.TaskID) weaver.TaskInfo {
	fx.Helper()
	info, err := fx.client.Get(fx.Context(), id)
	if err != nil {
		fx.Fatalf("Get: %v", err)
	}
	return info
}

func (fx *fixture) history(id weaver.TaskID) store.History {
	fx.Helper()
	h, err := fx.client.History(fx.Context(), id)
	if err != nil {
		fx.Fatalf("History: %v", err)
	}
	return h
}

func (fx *fixture) wantState(id weaver.TaskID, want weaver.State) {
	fx.Helper()
	if got := fx.get(id); got.State != want {
		fx.Errorf("task %s is %s (%s, error %+v), want %s", id, got.State, got.Waiting, got.Error, want)
	}
}

// outcomes returns the outcomes of a task's attempts, in order.
func (fx *fixture) outcomes(id weaver.TaskID) []task.Outcome {
	fx.Helper()
	var all []task.Outcome
	for _, a := range fx.history(id).Attempts {
		all = append(all, a.Outcome)
	}
	return all
}

func (fx *fixture) wantOutcomes(id weaver.TaskID, want ...task.Outcome) {
	fx.Helper()
	if got := fx.outcomes(id); !slices.Equal(got, want) {
		fx.Errorf("attempts ended %v, want %v", got, want)
	}
}

// must fails the test at once unless err is nil.
func (fx *fixture) must(err error) {
	fx.Helper()
	if err != nil {
		fx.Fatal(err)
	}
}

// wantError fails the test unless err is the sentinel and its message contains every word: the problem
// and the remedy.
func wantError(t testing.TB, err, sentinel error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that is %q", sentinel)
		return
	}
	if sentinel != nil && !errors.Is(err, sentinel) {
		t.Errorf("error %q is not %q", err, sentinel)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// near fails the test unless got is within a tenth of want.
func near(t testing.TB, what string, got, want time.Duration) {
	t.Helper()
	if got < want*9/10 || got > want*11/10 {
		t.Errorf("%s = %s, want about %s", what, got, want)
	}
}

// logbook records log lines.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// lines returns the lines with this message.
func (l *logbook) lines(t testing.TB, message string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(l.buf.Bytes())); dec.More(); {
		var line map[string]any
		if err := dec.Decode(&line); err != nil {
			t.Fatalf("the log: %v", err)
		}
		if line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

// gate lets a handler report that it runs and wait until the test releases it.
type gate struct{ in, out chan struct{} }

func newGate() *gate { return &gate{in: make(chan struct{}), out: make(chan struct{})} }

// pass is called by the handler.
func (g *gate) pass(ctx context.Context) error {
	select {
	case g.in <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-g.out:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open releases one waiting handler.
func (g *gate) open() { g.out <- struct{}{} }
