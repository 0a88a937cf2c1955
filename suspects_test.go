package weaver_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/store"
)

// A claim reports how many quarantined tasks the worker runs, and the smallest
// quarantine limit among them: the store leases no further one beyond it.
func TestClaimsReportQuarantinedTasks(t *testing.T) {
	typ := weaver.Define[string, string]("engine.suspects.run.v1")
	scene(t, "as they begin and end", func(w *world) {
		limits := map[string]int{`"four"`: 4, `"one"`: 1, `"two"`: 2} // by input
		var mu sync.Mutex
		var reports []string
		s := storehook.New(w.store, &storehook.Hooks{
			Hide: storehook.AllOptional,
			Claim: func(_ context.Context, req store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
				res, err := next()
				mu.Lock()
				defer mu.Unlock()
				if r := fmt.Sprintf("%d of %d", req.Quarantined, req.QuarantineLimit); !slices.Contains(reports, r) {
					reports = append(reports, r)
				}
				for i := range res.Tasks {
					c := &res.Tasks[i]
					c.Quarantined, c.QuarantineLimit = true, limits[string(c.Task.Input)]
				}
				return res, err
			},
		})
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
		mu.Lock()
		defer mu.Unlock()
		want := []string{"0 of 0", "1 of 4", "2 of 1", "3 of 1", "2 of 2", "1 of 2"}
		if !slices.Equal(reports, want) {
			w.Errorf("the claims reported %q, want %q", reports, want)
		}
	})
}
