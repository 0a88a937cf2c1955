package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

// collected is a store whose Collect is answered by a test.
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

// Without rules, and without support for feeds, an engine deletes nothing.
func TestCollectorWithoutRules(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		e := &env{Config: Config{Store: bare{f.Store}, Values: &Values{}}}
		if err := newCollector(e).run(f.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An engine shortens the feed of events, even a feed that begins later. Without a feed it checks once an hour.
func TestCollectorShortensTheFeed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		s := &looked{Store: f.Store}
		e := &env{Config: Config{Store: s, Namespace: testNS, TTL: testTTL, Values: &Values{}, Log: slog.New(slog.DiscardHandler)}}
		ctx, stop := context.WithCancel(f.Context())
		done := make(chan error)
		go func() { done <- newCollector(e).run(ctx) }()
		time.Sleep(10*time.Hour + time.Minute)
		if n := s.looks.Load(); n < 9 || n > 12 {
			t.Errorf("it looked %d times for a feed in 10 hours", n)
		}
		s.keep(t, time.Hour)
		time.Sleep(2 * time.Hour) // until it has seen the feed
		last := func() (kept, newest int64) {
			page, err := s.Store.Feed(ctx, testNS, store.FeedRequest{StateOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			return page.Kept, page.Newest
		}
		f.enqueue(700)
		time.Sleep(58 * time.Minute)
		if kept, newest := last(); kept != 0 || newest != 700 {
			t.Errorf("after 58 minutes events up to %d of %d are gone", kept, newest)
		}
		time.Sleep(5 * time.Minute)
		if kept, newest := last(); kept != 700 || newest != 700 {
			t.Errorf("after an hour events up to %d of %d are gone", kept, newest)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// looked counts the checks for a feed, some of which fail.
type looked struct {
	store.Store
	looks, fails atomic.Int64
}

// keep begins a feed.
func (l *looked) keep(t *testing.T, d time.Duration) {
	t.Helper()
	if got, err := l.Operate(t.Context(), testNS, store.KeepFeed{Keep: d}); err != nil || got[0].Err != nil {
		t.Fatal(got, err)
	}
}

func (l *looked) Feed(ctx context.Context, ns string, req store.FeedRequest) (store.FeedPage, error) {
	l.looks.Add(1)
	if _, limited := ctx.Deadline(); !limited {
		return store.FeedPage{}, errors.New("a call without an end")
	}
	if l.fails.Add(-1) >= 0 {
		return store.FeedPage{}, store.ErrUnavailable
	}
	return l.Store.Feed(ctx, ns, req)
}

// A failed check does not postpone the next check by an hour.
func TestCollectorLooksAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		s := &looked{Store: f.Store}
		s.fails.Store(2) // before it knows of the feed
		s.keep(t, time.Minute)
		e := &env{Config: Config{Store: s, Namespace: testNS, TTL: testTTL, Values: &Values{}, Log: slog.New(slog.DiscardHandler)}}
		ctx, stop := context.WithCancel(f.Context())
		done := make(chan error)
		go func() { done <- newCollector(e).run(ctx) }()
		for _, when := range []string{"at first", "later"} {
			f.enqueue(3)
			time.Sleep(5 * time.Minute)
			if state, err := s.Store.Feed(ctx, testNS, store.FeedRequest{StateOnly: true}); err != nil || state.Kept != state.Newest {
				t.Errorf("%s, after errors, events up to %d of %d are gone (%v), want all", when, state.Kept, state.Newest, err)
			}
			s.fails.Store(1)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
