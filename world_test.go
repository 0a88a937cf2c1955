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
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// openStore returns the empty store that most tests run on. It is called in
// a bubble.
func openStore(t testing.TB) weaver.Store {
	t.Helper()
	return openMemory(t)
}

// everyStore returns an empty store of each kind.
func everyStore(w *world) []weaver.Store {
	w.Helper()
	return []weaver.Store{memstore.New(), openMemory(w), openFile(w, filepath.Join(w.TempDir(), "weaver.db"))}
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

// world is the stage of one scene: an empty store, a client, and what the
// engines log, in a bubble where hours cost nothing.
type world struct {
	*testing.T
	store  weaver.Store
	client *weaver.Client
	log    *logbook
}

// scene is a subtest that plays in a world of its own.
func scene(t *testing.T, name string, play func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inWorld(t, play) })
}

func inWorld(t *testing.T, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		play(newWorld(t, openStore(t)))
	})
}

func newWorld(t *testing.T, s weaver.Store) *world {
	t.Helper()
	w := &world{T: t, store: s, log: &logbook{}}
	w.client = w.newClient()
	return w
}

func (w *world) newClient() *weaver.Client {
	w.Helper()
	c, err := weaver.NewClient(w.store, weaver.ClientConfig{Logger: w.log.logger()})
	if err != nil {
		w.Fatalf("NewClient: %v", err)
	}
	return c
}

// engine is one that runs.
type engine struct {
	*weaver.Engine
	stop  func() error  // ends Run and returns its error
	ended chan struct{} // closed when Run has returned
}

// run starts an engine, on the world's store unless the scene gives another.
// It is stopped, without an error, when the scene ends.
func (w *world) run(handlers ...weaver.Handler) *engine {
	w.Helper()
	return w.runConfig(w.store, weaver.Config{Handlers: handlers})
}

func (w *world) runConfig(s weaver.Store, cfg weaver.Config) *engine {
	w.Helper()
	e := w.start(s, cfg)
	w.Cleanup(func() {
		if err := e.stop(); err != nil {
			w.Errorf("Run: %v", err)
		}
	})
	return e
}

// start is runConfig for engines that the scene stops itself.
func (w *world) start(s weaver.Store, cfg weaver.Config) *engine {
	w.Helper()
	eng := w.newEngine(s, cfg)
	ctx, cancel := context.WithCancel(w.Context())
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

func (w *world) newEngine(s weaver.Store, cfg weaver.Config) *weaver.Engine {
	w.Helper()
	if cfg.Logger == nil {
		cfg.Logger = w.log.logger()
	}
	eng, err := weaver.New(s, cfg)
	if err != nil {
		w.Fatalf("New: %v", err)
	}
	return eng
}

// idle runs everything that is due and returns.
func (w *world) idle(handlers ...weaver.Handler) {
	w.Helper()
	if err := w.newEngine(w.store, weaver.Config{Handlers: handlers}).RunUntilIdle(w.Context()); err != nil {
		w.Fatalf("RunUntilIdle: %v", err)
	}
}

// enqueue stores one task.
func enqueue[In, Out any](w *world, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) *weaver.Handle[Out] {
	w.Helper()
	h, err := typ.Enqueue(w.Context(), w.client, in, opts...)
	if err != nil {
		w.Fatalf("Enqueue: %v", err)
	}
	return h
}

// result waits for a task that must succeed.
func result[Out any](w *world, h *weaver.Handle[Out]) Out {
	w.Helper()
	out, err := h.Wait(w.Context())
	if err != nil {
		w.Fatalf("Wait: %v", err)
	}
	return out
}

// failure waits for a task that must fail or be cancelled.
func failure[Out any](w *world, h *weaver.Handle[Out]) *weaver.TaskError {
	w.Helper()
	_, err := h.Wait(w.Context())
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok {
		w.Fatalf("Wait: %v, want a *weaver.TaskError", err)
	}
	return te
}

// fails is failure for those who do not look closer.
func fails[Out any](w *world, h *weaver.Handle[Out]) {
	w.Helper()
	_ = failure(w, h)
}

// blocked waits for a task that must block.
func blocked[Out any](w *world, h *weaver.Handle[Out]) error {
	w.Helper()
	_, err := h.Wait(w.Context())
	if !errors.Is(err, weaver.ErrBlocked) {
		w.Fatalf("Wait: %v, want an error that is ErrBlocked", err)
	}
	return err
}

// blocks is blocked for those who do not look closer.
func blocks[Out any](w *world, h *weaver.Handle[Out]) {
	w.Helper()
	_ = blocked(w, h)
}

func (w *world) get(id weaver.TaskID) weaver.TaskInfo {
	w.Helper()
	info, err := w.client.Get(w.Context(), id)
	if err != nil {
		w.Fatalf("Get: %v", err)
	}
	return info
}

func (w *world) history(id weaver.TaskID) weaver.History {
	w.Helper()
	h, err := w.client.History(w.Context(), id)
	if err != nil {
		w.Fatalf("History: %v", err)
	}
	return h
}

func (w *world) wantState(id weaver.TaskID, want weaver.State) {
	w.Helper()
	if got := w.get(id); got.State != want {
		w.Errorf("task %s is %s (%s, error %+v), want %s", id, got.State, got.Waiting, got.Error, want)
	}
}

// outcomes returns how a task's attempts ended, in order.
func (w *world) outcomes(id weaver.TaskID) []task.Outcome {
	w.Helper()
	var all []task.Outcome
	for _, a := range w.history(id).Attempts {
		all = append(all, a.Outcome)
	}
	return all
}

func (w *world) wantOutcomes(id weaver.TaskID, want ...task.Outcome) {
	w.Helper()
	if got := w.outcomes(id); !slices.Equal(got, want) {
		w.Errorf("attempts ended %v, want %v", got, want)
	}
}

// must fails the test at once unless err is nil.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantError fails the test unless err is the sentinel and its message names
// every word: what was wrong, and what to do.
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

// near fails the test unless got is want, give or take a tenth.
func near(t testing.TB, what string, got, want time.Duration) {
	t.Helper()
	if got < want*9/10 || got > want*11/10 {
		t.Errorf("%s = %s, want about %s", what, got, want)
	}
}

// logbook keeps what was logged.
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

// gate lets a handler say that it runs and wait until the test lets it go on.
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

// open lets one handler that came in go on.
func (g *gate) open() { g.out <- struct{}{} }
