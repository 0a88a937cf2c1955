package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

// collected is a store whose collects a test answers.
type collected struct {
	store.Store
	answer func(req store.CollectRequest) (store.CollectResult, error)
}

func (s *collected) Collect(_ context.Context, _ string, req store.CollectRequest) (store.CollectResult, error) {
	return s.answer(req)
}

func TestCollector(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		var asked []string
		fails := false
		var mu sync.Mutex // guards both
		mu.Lock()
		sleep := func(d time.Duration) {
			mu.Unlock()
			time.Sleep(d)
			mu.Lock()
		}
		s := &collected{f.Store, func(req store.CollectRequest) (store.CollectResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(req.Retain) != 1 || req.DryRun {
				t.Errorf("it asks for %+v", req)
			}
			asked = append(asked, req.After)
			switch {
			case fails:
				return store.CollectResult{}, errors.New("the disk is gone")
			case len(asked) < 3:
				return store.CollectResult{Tasks: 1, Next: "further"}, nil
			}
			return store.CollectResult{}, nil
		}}
		var log logged
		e := &env{Config: Config{Store: s, Namespace: testNS, TTL: testTTL, Values: &Values{Store: f.Store, Namespace: testNS}, Log: slog.New(slog.NewTextHandler(&log, nil)), Retain: []store.Retention{{Age: time.Hour}}}}
		ctx, stop := context.WithCancel(f.Context())
		done := make(chan error)
		go func() { done <- newCollector(e).run(ctx) }()

		sleep(50 * time.Second)
		if len(asked) > 0 {
			t.Errorf("it looked %d times within 50 s", len(asked))
		}
		sleep(20 * time.Second)
		if len(asked) != 3 || asked[0] != "" || asked[1] != "further" || asked[2] != "further" {
			t.Errorf("a pass asks for %q, want the oldest and what follows until the young", asked)
		}
		if text := log.take(); !strings.Contains(text, "tasks=2") {
			t.Errorf("the log says %q, want the 2 tasks that went", text)
		}
		fails, asked = true, nil
		sleep(70 * time.Second)
		if len(asked) == 0 || len(asked) > 2 || asked[0] != "" {
			t.Errorf("it asked for %q where the store fails, want once per pass, from the oldest", asked)
		}
		if text := log.take(); !strings.Contains(text, "the disk is gone") {
			t.Errorf("the log says %q, want the error", text)
		}
		mu.Unlock()
		stop()
		if err := <-done; err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
}

// An engine without rules removes nothing.
func TestCollectorWithoutRules(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		e := &env{Config: Config{Store: f.Store, Values: &Values{}}}
		if err := newCollector(e).run(f.Context()); err != nil {
			t.Error(err)
		}
	})
}
