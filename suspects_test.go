package weaver_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// suspecting is a store that takes every task for a suspect, and remembers
// what the worker says of those it runs.
type suspecting struct {
	store.Store
	company map[string]int // of a task, by its input

	mu   sync.Mutex
	said []string
}

func (s *suspecting) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	res, err := s.Store.Claim(ctx, ns, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if said := fmt.Sprintf("%d of %d", req.Quarantined, req.QuarantineLimit); !slices.Contains(s.said, said) {
		s.said = append(s.said, said)
	}
	for i := range res.Tasks {
		c := &res.Tasks[i]
		c.Quarantined, c.QuarantineLimit = true, s.company[string(c.Task.Input)]
	}
	return res, err
}

// A worker names the suspects that it runs, and the smallest company that one
// of them may have (R7): the store gives it no other one beyond that.
func TestAWorkerNamesItsSuspects(t *testing.T) {
	typ := weaver.Define[string, string]("engine.suspects.run.v1")
	scene(t, "as they come and go", func(w *world) {
		s := &suspecting{Store: w.store, company: map[string]int{`"four"`: 4, `"one"`: 1, `"two"`: 2}}
		end := map[string]chan struct{}{"four": make(chan struct{}), "one": make(chan struct{}), "two": make(chan struct{})}
		w.runConfig(s, weaver.Config{Concurrency: 8, Handlers: []weaver.Handler{
			typ.Handler(func(_ context.Context, in string) (string, error) {
				<-end[in]
				return in, nil
			}),
		}})
		var handles []*weaver.Handle[string]
		for _, in := range []string{"four", "one", "two"} {
			handles = append(handles, enqueue(w, typ, in))
			time.Sleep(5 * time.Second)
		}
		for i, in := range []string{"one", "four", "two"} {
			close(end[in])
			result(w, handles[[]int{1, 0, 2}[i]])
			time.Sleep(5 * time.Second)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		want := []string{"0 of 0", "1 of 4", "2 of 1", "3 of 1", "2 of 2", "1 of 2"}
		if !slices.Equal(s.said, want) {
			w.Errorf("the worker said %q, want %q", s.said, want)
		}
	})
}
