package weavertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// ReplayCapsule runs a handler against the tasks of its type that a capsule recorded: a file of `weaver export`. It makes
// the last attempt of each again. Every step returns its recorded result or error; sleeps, signals, answers, children and
// artifacts come from the record, too. Nothing outside runs: a step that is not recorded ends the attempt before its
// function.
//
// The test fails where the code goes another way: with a step that is not recorded or is no longer asked for, or with
// another outcome, error or output. If the record ends in the middle of an attempt (it was running, or its worker
// was lost), the replay ends there, too. Undos and cleanups are not replayed.
//
// Masked fields are the text "[redacted]" in the file, for the handler as well. A capsule without the input or the value of a step fails the test.
// The file is not changed.
func ReplayCapsule(t *testing.T, h weaver.Handler, file string) {
	t.Helper()
	o, err := capsule.OpenCopy(t.Context(), func(ctx context.Context, path string) (capsule.DB, error) { return sqlite.Open(ctx, path) }, file)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	content := o.Content
	if err := o.Close(); err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	replayed := 0
	for i := range content.Tasks {
		of := &content.Tasks[i].Task
		if of.Type != h.Name() {
			continue
		}
		replayed++
		r, err := capsule.NewReplay(content, of.ID)
		if err != nil {
			t.Fatalf("weavertest: replay %s: %v", file, err)
		}
		for _, found := range replayOne(t, h, r, content) {
			t.Errorf("weavertest: task %s (%s), attempt %d of %s: the code goes another way: %s", of.ID, of.Type, r.Attempt.No, file, found)
		}
	}
	if replayed == 0 {
		t.Fatalf("weavertest: %s has no task of the type %s: it has %v", file, h.Name(), typesOf(content))
	}
}

func typesOf(c *capsule.Content) (types []string) {
	for i := range c.Tasks {
		types = append(types, c.Tasks[i].Task.Type)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// replayOne makes one attempt again, and returns the differences.
func replayOne(t *testing.T, h weaver.Handler, r *capsule.Replay, content *capsule.Content) []string {
	t.Helper()
	bucket := blob.NewMemory()
	for i := range content.Blobs {
		b := &content.Blobs[i]
		if err := bucket.Put(t.Context(), blob.Key(capsule.Namespace, b.SHA256, b.ID.String()), bytes.NewReader(b.Data)); err != nil {
			t.Fatalf("weavertest: %v", err)
		}
	}
	g := &recordedSteps{replay: r}
	e := NewConfig(t, weaver.Config{
		Namespace: capsule.Namespace, Handlers: []weaver.Handler{h}, Bucket: bucket,
		Logger:  slog.New(slog.DiscardHandler),
		Plugins: []weaver.Plugin{weaver.PluginFunc(g.install)},
	})
	if err := r.Fill(t.Context(), e.db.DB()); err != nil {
		t.Fatalf("weavertest: fill the store from the capsule: %v", err)
	}
	id := r.Task.Task.ID
	var err error
	e.clock.bubble(t, func(t *testing.T) {
		once := &onceStore{engineStore: e.engineStore(), target: id, done: make(chan struct{})}
		var w *worker
		if w, err = newWorker(once, e.cfg); err != nil {
			return
		}
		err = w.beside(t.Context(), func(ctx context.Context) {
			select {
			case <-once.done:
			case <-ctx.Done():
			}
		})
	})
	if err != nil {
		t.Fatalf("weavertest: the engine: %v", err)
	}
	hist, err := e.History(t.Context(), id)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	return r.Compare(&hist, g.asked)
}

// recordedSteps answers for the functions of steps: those that failed fail again, and no other runs.
type recordedSteps struct {
	replay *capsule.Replay

	mu    sync.Mutex
	asked []string // steps that are not recorded
}

func (g *recordedSteps) install(s *weaver.Setup) error {
	s.WrapStep(func(weaver.StepFunc) weaver.StepFunc { return g.step })
	return nil
}

func (g *recordedSteps) step(_ context.Context, name string) (json.RawMessage, error) {
	if e := g.replay.Failed[name]; e != nil {
		err := errors.New(e.Message)
		if e.Code != "" {
			err = weaver.WithCode(e.Code, err)
		}
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.asked, name) {
		g.asked = append(g.asked, name)
	}
	return nil, weaver.Permanent(fmt.Errorf("weavertest: the step %q is not recorded in the capsule", name))
}

// onceStore gives an engine one attempt of one task.
type onceStore struct {
	engineStore
	target task.ID
	done   chan struct{} // closed when the attempt has ended

	mu      sync.Mutex
	claimed bool
	ended   bool
}

// Claim implements store.Core.
func (s *onceStore) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimed {
		return store.ClaimResult{Next: -1}, nil
	}
	res, err := s.engineStore.Claim(ctx, ns, req)
	s.claimed = len(res.Tasks) > 0
	return res, err
}

// Finish implements store.Core.
func (s *onceStore) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	res, err := s.engineStore.Finish(ctx, ns, fins...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range fins {
		if err == nil && fins[i].Lease.Task == s.target && !s.ended {
			s.ended = true
			close(s.done)
		}
	}
	return res, err
}
