package explainread_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/explainread"
	"github.com/goweaver/weaver/store/memstore"
)

// The estimate of the last task of a backlog, read at any time, contains the time at which it starts.
func TestStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots, tasks int
		late, run    time.Duration // late: the worker comes after the tasks
		options      []weaver.EnqueueOption
		reason       string
	}{
		"a rate":        {20, 50, 0, 100 * time.Millisecond, []weaver.EnqueueOption{weaver.RateLimit("partner", 10, time.Second, 1)}, "lets 10 start in 1s"},
		"a burst":       {20, 200, 0, 100 * time.Millisecond, []weaver.EnqueueOption{weaver.RateLimit("partner", 60, time.Minute, 30)}, "rate:partner"},
		"a speed":       {5, 300, 0, 2 * time.Second, nil, "start per minute"},
		"a late worker": {5, 300, time.Minute, 2 * time.Second, nil, "start per minute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := memstore.New()
				job := weaver.Define[int, int]("acme.test.start.v1")
				began := make(map[int]time.Time)
				var mu sync.Mutex // of began
				e, err := weaver.New(db, weaver.Config{Concurrency: c.slots, Handlers: []weaver.Handler{job.Handler(func(_ context.Context, n int) (int, error) {
					mu.Lock()
					began[n] = time.Now()
					mu.Unlock()
					time.Sleep(c.run)
					return n, nil
				})}})
				if err != nil {
					t.Fatal(err)
				}
				client, err := weaver.NewClient(db, weaver.ClientConfig{})
				if err != nil {
					t.Fatal(err)
				}
				inputs := make([]int, c.tasks)
				for i := range inputs {
					inputs[i] = i
				}
				handles, err := job.EnqueueMany(t.Context(), client, inputs, c.options...)
				if err != nil {
					t.Fatal(err)
				}
				last := handles[c.tasks-1].ID()
				why := func() *explain.Explanation {
					x, err := explainread.Reader{Source: explainread.Masked{Client: client}}.Explain(t.Context(),
						explain.Explainer{Clock: explain.Clock{Now: time.Now(), Zone: time.UTC}, Command: explainread.Command("weaver", client.Namespace()), Depth: 1}, last)
					if err != nil {
						t.Fatal(err)
					}
					return x
				}
				if x := why(); !strings.Contains(x.Start.Reason, "no live worker") || !strings.HasPrefix(x.Notes[0], "When it will start is unknown: no live worker") {
					t.Errorf("without a worker: %+v", x)
				}
				time.Sleep(c.late)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- e.Run(ctx) }()
				synctest.Wait()
				var read []*explain.Explanation
				known := 0
				for x := why(); x.State == "ready"; x = why() {
					read = append(read, x)
					time.Sleep(3 * time.Second)
				}
				synctest.Wait() // the last task is claimed; now its handler has begun too
				mu.Lock()
				at := began[c.tasks-1]
				mu.Unlock()
				for _, x := range read {
					s := x.Start
					if s.Latest.IsZero() {
						continue
					}
					known++
					if at.Before(s.Earliest) || at.After(s.Latest) {
						t.Errorf("it started at %s, and %s to %s was expected: %s", at, s.Earliest, s.Latest, s.Reason)
					}
					if !strings.Contains(strings.Join(x.Notes, " "), s.Reason) {
						t.Errorf("the notes do not say %q: %q", s.Reason, x.Notes)
					}
				}
				if known == 0 || !strings.Contains(read[len(read)-1].Start.Reason, c.reason) {
					t.Errorf("of %d estimates %d are known; the last says %q, want %q", len(read), known, read[len(read)-1].Start.Reason, c.reason)
				}
				if err := client.PauseQueue(t.Context(), "default"); err != nil {
					t.Fatal(err)
				}
				h, err := job.Enqueue(t.Context(), client, 0)
				if err != nil {
					t.Fatal(err)
				}
				last = h.ID()
				if x := why(); !strings.Contains(x.Start.Reason, "paused") || !x.Start.Latest.IsZero() {
					t.Errorf("paused: %+v", x.Start)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
