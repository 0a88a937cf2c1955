package weaver_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
)

// faults is the fixture's store as seen by one worker: calls fail, lose their replies, or are answered
// by a hook. Other users of the fixture's store are not affected.
type faults struct {
	store store.Store
	hooks storehook.Hooks // set before the store is used; Around is taken

	mu     sync.Mutex
	before func(method string) error // an error keeps the call from the store
	after  func(method string) error // an error replaces the answer of a call that succeeded
	calls  map[string]int
}

func newFaults(fx *fixture) *faults {
	f := &faults{calls: map[string]int{}}
	f.hooks = storehook.Hooks{Around: f.call}
	f.store = storehook.New(fx.store, &f.hooks)
	return f
}

// cut fails every call except Ready from now on; mend ends that.
func (f *faults) cut() {
	f.set(func(method string) error {
		if method == "Ready" {
			return nil
		}
		return fmt.Errorf("%s: %w: the test cut the connection", method, store.ErrUnavailable)
	}, nil)
}

func (f *faults) mend() { f.set(nil, nil) }

// fail makes every call of one method fail.
func (f *faults) fail(method string, err error) {
	f.set(func(m string) error {
		if m == method {
			return err
		}
		return nil
	}, nil)
}

func (f *faults) set(before, after func(method string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// count returns the number of calls of a method.
func (f *faults) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *faults) call(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
	if err := f.enter(c.Method); err != nil {
		return err
	}
	if err := next(ctx); err != nil {
		return err
	}
	return f.leave(c.Method)
}

func (f *faults) enter(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	if f.before == nil {
		return nil
	}
	return f.before(method)
}

func (f *faults) leave(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.after == nil {
		return nil
	}
	return f.after(method)
}

// polled returns the store without its capabilities, like one that other processes write to without
// notices: its users poll.
func polled(s store.Store) store.Store {
	return storehook.New(s, &storehook.Hooks{Hide: store.AllCapabilities})
}
