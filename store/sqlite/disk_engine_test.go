package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/disktest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// engineRig is an engine over a failing disk, with tasks of three steps.
type engineRig struct {
	*rig
	typ    *weaver.Type[int, string]
	eng    *weaver.Engine
	steps  atomic.Int64 // started step functions
	stop   context.CancelFunc
	ended  chan error
	handle []*weaver.Handle[string]
}

const engineTTL = 5 * time.Second

func openEngineRig(t *testing.T) *engineRig {
	t.Helper()
	h := &engineRig{rig: newRig(t), typ: weaver.Define[int, string]("acme.test.engine.v1", weaver.MaxAttempts(3))}
	var err error
	h.eng, err = weaver.New(h.db, weaver.Config{
		Namespace: fixNS, Handlers: []weaver.Handler{h.typ.Handler(h.handler)},
		Concurrency: 3, Lease: engineTTL, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.stop, h.ended = cancel, make(chan error, 1)
	go func() { h.ended <- h.eng.Run(ctx) }()
	synctest.Wait() // it has joined and looks for work
	return h
}

func (h *engineRig) handler(ctx context.Context, n int) (string, error) {
	out := ""
	for _, name := range []string{"first", "second"} {
		v, err := weaver.Step(ctx, name, func(ctx context.Context) (string, error) {
			h.begun(ctx, name)
			time.Sleep(time.Second)
			return fmt.Sprint(name, n), nil
		})
		if err != nil {
			return "", err
		}
		out += v
	}
	note := fmt.Sprint("engine ", n)
	return weaver.StepTx(ctx, "third", func(ctx context.Context, tx *sql.Tx) (string, error) {
		h.begun(ctx, "third")
		_, err := tx.ExecContext(ctx, insertOrder, note)
		return out, err
	})
}

// begun is called by a step's function: its value must not be in the store.
func (h *engineRig) begun(ctx context.Context, name string) {
	h.steps.Add(1)
	id := weaver.Current(ctx).TaskID
	hist, err := h.db.History(context.WithoutCancel(ctx), fixNS, id)
	if err != nil {
		h.Errorf("read the history of a running task: %v", err)
		return
	}
	for _, s := range hist.Steps {
		if s.Name == name && s.State == task.StepCompleted {
			h.Errorf("step %s of task %v runs again, its value was committed by attempt %d", name, id, s.AttemptNo)
		}
	}
}

// submit enqueues tasks repeatedly until the store acknowledges them.
func (h *engineRig) submit(tasks int) {
	var wg sync.WaitGroup
	h.handle = make([]*weaver.Handle[string], tasks)
	for i := range tasks {
		wg.Go(func() {
			for {
				got, err := h.typ.Enqueue(h.Context(), h.eng, i, weaver.IdempotencyKey(fmt.Sprint("engine ", i)))
				if err == nil {
					h.handle[i] = got
					return
				}
				time.Sleep(time.Second)
			}
		})
		time.Sleep(200 * time.Millisecond)
	}
	wg.Wait()
}

// all waits until every task has succeeded.
func (h *engineRig) all(at string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 10*time.Minute)
	defer cancel()
	for i, got := range h.handle {
		want := fmt.Sprintf("first%dsecond%d", i, i)
		if out, err := got.Wait(ctx); err != nil || out != want {
			h.Errorf("%s: task %d ends with %q, %v; want %q", at, i, out, err, want)
		}
	}
}

// leave stops the engine and checks the file.
func (h *engineRig) leave(at string) {
	h.Helper()
	h.stop()
	if err := <-h.ended; err != nil {
		h.Errorf("%s: Run: %v", at, err)
	}
	h.close()
	f, bad, err := look(h, h.path)
	if err != nil || len(bad) > 0 {
		h.Fatalf("%s: the file is not in order: %v %v", at, err, bad)
	}
	if len(f.tasks) != len(h.handle) || len(f.orders) != len(h.handle) {
		h.Errorf("%s: %d tasks and %d orders, want %d of each", at, len(f.tasks), len(f.orders), len(h.handle))
	}
}

// The disk fails while an engine works, for less than a lease or for much longer. After the
// disk works again the engine continues: every task succeeds, and no completed step runs
// again.
func TestEngineOverADiskThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	const tasks = 6
	for name, c := range map[string]struct {
		diskFault
		outage time.Duration
	}{
		"no space for a moment":  {diskFault{err: syscall.ENOSPC, lasts: true, scarce: true, torn: true}, engineTTL / 8},
		"no space for long":      {diskFault{err: sqlite3.FULL, lasts: true}, 4 * engineTTL},
		"a write fails":          {diskFault{err: syscall.EIO, torn: true}, time.Millisecond},
		"a sync fails":           {diskFault{counts: disktest.Sync, err: syscall.EIO}, time.Millisecond},
		"syncs fail for long":    {diskFault{counts: disktest.Sync, err: syscall.EIO, lasts: true}, 4 * engineTTL},
		"read-only for a moment": {diskFault{err: syscall.EROFS, lasts: true, want: store.ErrReadOnly}, engineTTL / 2},
		"read-only for long":     {diskFault{err: syscall.EROFS, lasts: true, want: store.ErrReadOnly}, 3 * engineTTL},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				dry := openEngineRig(t)
				dry.disk.Fail(nil)
				dry.submit(tasks)
				dry.all("a disk that works")
				points := dry.disk.Count(c.counts)
				dry.leave("a disk that works")
				played, failed := 0, 0
				for n := 1; n <= points; n += spread(points, of(4, points)) {
					if c.playEngine(t, tasks, n, c.outage) {
						failed++
					}
					played++
				}
				t.Logf("%d of %d points, the disk failed at %d", played, points, failed)
				if failed == 0 {
					t.Error("the disk never failed")
				}
			})
		})
	}
}

// playEngine runs an engine while the disk fails from the n-th operation on, and reports
// whether it failed.
func (df diskFault) playEngine(t *testing.T, tasks, n int, outage time.Duration) bool {
	t.Helper()
	h := openEngineRig(t)
	defer h.close()
	failing, plan := make(chan struct{}), df.plan(n)
	var once sync.Once
	h.disk.Fail(func(op disktest.Op) *disktest.Fault {
		f := plan(op)
		if f != nil {
			once.Do(func() { close(failing) })
		}
		return f
	})
	lifted := make(chan int)
	idle, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-failing:
			time.Sleep(outage)
		case <-idle.Done():
		}
		n := h.disk.Faults()
		h.disk.Fail(nil)
		lifted <- n
	}()
	h.submit(tasks)
	at := fmt.Sprintf("%s %d fails (%v) for %v", df.counts, n, df.err, outage)
	h.all(at)
	cancel()
	faults := <-lifted
	h.leave(at)
	return faults > 0
}
