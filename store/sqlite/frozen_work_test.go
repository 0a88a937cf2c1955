package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A frozenWork is a file of an earlier schema with work in progress, whose program was killed.
// Today's program upgrades it and finishes the work. Its own test writes the file, with
// WEAVER_FROZEN=write, in a checkout of the commit that its comment names. This file and the
// test's file are copied there.
type frozenWork struct {
	file   string
	fills  func(p *frozenProgram) // enqueues and operates
	goOn   func(p *frozenProgram) // unblocks, signals, resumes
	handle func(ctx context.Context, p *frozenProgram, kind string) (string, error)
	states map[string]string // by input: the states in the file
	ends   map[string]string // by input: the outputs at the end
	check  func(p *frozenProgram, snap *store.Snapshot)
}

var (
	frozenType = weaver.Define[string, string]("acme.test.frozen.v1", weaver.MaxAttempts(3))
	pausedType = weaver.Define[string, string]("acme.test.frozen_paused.v1")
)

// frozenProgram is the program that writes such a file, or the program that upgrades it.
type frozenProgram struct {
	*fixture
	name   string // "old" or "new"
	handle func(ctx context.Context, p *frozenProgram, kind string) (string, error)
	eng    *weaver.Engine
	found  map[string]task.ID // by input: the tasks of the file
}

// step is a step whose value names the program that ran it.
func (p *frozenProgram) step(ctx context.Context, name string) (string, error) {
	return weaver.Step(ctx, name, func(context.Context) (string, error) { return p.name, nil })
}

// run is the handler: a step, the action of the input, and another step.
func (p *frozenProgram) run(ctx context.Context, kind string) (string, error) {
	first, err := p.step(ctx, "first")
	if err != nil {
		return "", err
	}
	between, err := p.handle(ctx, p, kind)
	if err != nil {
		return between, err
	}
	last, err := p.step(ctx, "last")
	return first + between + " " + last, err
}

func (p *frozenProgram) enqueue(kind string, opts ...weaver.EnqueueOption) task.ID {
	p.Helper()
	h, err := frozenType.Enqueue(p.Context(), p.eng, kind, opts...)
	if err != nil {
		p.Fatalf("enqueue %q: %v", kind, err)
	}
	return h.ID()
}

// works runs an engine until the returned function is called.
func (p *frozenProgram) works() (stop func()) {
	p.Helper()
	eng, err := weaver.New(p.db, weaver.Config{Namespace: fixNS, Poll: time.Minute, Handlers: []weaver.Handler{frozenType.Handler(p.run), pausedType.Handler(p.run)}})
	if err != nil {
		p.Fatal(err)
	}
	p.eng = eng
	ctx, cancel := context.WithCancel(p.Context())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			p.Error(err)
		}
	}
}

// write creates the file: a copy of a store in which a program works.
func (w *frozenWork) write(t *testing.T) {
	t.Helper()
	path, err := filepath.Abs(w.file)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path))
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := &frozenProgram{fixture: fileFixture(t), name: "old", handle: w.handle}
		stop := p.works()
		w.fills(p)
		time.Sleep(time.Second)
		c, err := p.db.DB().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }() // read only
		for _, sql := range []string{"PRAGMA page_size = 1024", "VACUUM INTO '" + path + "'"} {
			if _, err := c.ExecContext(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		stop()
	})
}

// test upgrades the file and finishes the work.
func (w *frozenWork) test(t *testing.T) {
	t.Helper()
	if os.Getenv("WEAVER_FROZEN") == "write" {
		w.write(t)
		return
	}
	data, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) >= 200<<10 {
		t.Errorf("%s has %d bytes, want less than 200 KiB", w.file, len(data))
	}
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p := &frozenProgram{fixture: fixtureOn(t, openFile(t, path, sqlite.Synchronous(sqlite.SyncOff))), name: "new", handle: w.handle, found: make(map[string]task.ID)}
		if err := p.db.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		states := make(map[string]string)
		for _, u := range p.inOrder().Tasks {
			p.found[inputOf(&u)] = u.ID
			states[inputOf(&u)] = string(u.State) + " " + string(u.Waiting)
		}
		w.same(t, "as the file has it", states, w.states)
		stop := p.works()
		time.Sleep(2 * time.Minute) // the old leases have expired
		w.goOn(p)
		time.Sleep(time.Minute)
		stop()
		time.Sleep(75 * time.Minute) // without a worker, which would take long; tasks with a time become due
		stop = p.works()
		time.Sleep(time.Minute)
		ends := make(map[string]string)
		snap := p.inOrder()
		for _, u := range snap.Tasks {
			var out string
			if err := json.Unmarshal(u.Output, &out); err != nil {
				out = string(u.State) + " " + string(u.Waiting) + " " + string(u.Output)
			}
			ends[inputOf(&u)] = out
		}
		w.same(t, "at the end", ends, w.ends)
		for _, j := range snap.Jobs {
			if j.State != task.JobSucceeded {
				t.Errorf("the job %s is %s at the end", j.Name, j.State)
			}
		}
		if w.check != nil {
			w.check(p, snap)
		}
		stop()
	})
}

func inputOf(t *task.Task) (text string) {
	if err := json.Unmarshal(t.Input, &text); err != nil {
		return string(t.Input)
	}
	return text
}

// inOrder returns a snapshot without findings of store.Check.
func (p *frozenProgram) inOrder() *store.Snapshot {
	p.Helper()
	snap, err := p.db.Snapshot(p.Context(), fixNS)
	if err != nil {
		p.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		p.Errorf("store.Check: %v", v)
	}
	return snap
}

func (w *frozenWork) same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for kind, text := range want {
		if got[kind] != text {
			t.Errorf("%s, %q is %q, want %q", what, kind, got[kind], text)
		}
	}
	for kind, text := range got {
		if _, ok := want[kind]; !ok {
			t.Errorf("%s, there is %q, which is %q", what, kind, text)
		}
	}
}
