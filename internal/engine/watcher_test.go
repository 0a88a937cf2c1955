package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// shared is a store with other users: without notices, with a settable answer of Ready and warnings.
type shared struct {
	store.Store

	mu       sync.Mutex
	err      error
	warnings []store.Warning
}

func (s *shared) says(err error, warnings ...store.Warning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.warnings = err, warnings
}

func (*shared) Capabilities() store.Capabilities { return 0 }

func (s *shared) Ready(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *shared) Warnings(context.Context) []store.Warning {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.warnings
}

// logged is the text of a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the log lines since its last call.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func TestWatcherDrainsWhenTheSchemaIsNewer(t *testing.T) {
	inBubble(t, func(f *fixture) {
		s := &shared{Store: f}
		var log logged
		cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			time.Sleep(2 * testTTL)
			return json.RawMessage("1"), nil
		})
		cfg.Store, cfg.Slots, cfg.DrainTimeout, cfg.Log = s, 1, time.Hour, slog.New(slog.NewTextHandler(&log, nil))
		ids := f.enqueue(2)
		done := make(chan error)
		ctx, cancel := context.WithTimeout(f.Context(), time.Hour)
		defer cancel()
		go func() { done <- New(cfg).Run(ctx) }()
		time.Sleep(time.Second)
		s.says(fmt.Errorf("w.db: %w: it has migration 0009", store.ErrNewerSchema))
		if err := <-done; !errors.Is(err, store.ErrNewerSchema) || !strings.Contains(err.Error(), "0009") {
			f.Errorf("Run = %v, want ErrNewerSchema and the migration", err)
		}
		if n := f.states(ids); n[task.Succeeded] != 1 || n[task.Ready] != 1 {
			f.Errorf("states %v; want what ran to be finished, and nothing begun after that", n)
		}
		if text := log.take(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "draining") || !strings.Contains(text, "0009") {
			f.Errorf("the log says\n%s\nwant one line with the reason", text)
		}
	})
}

func TestWatcherWarnsOnceAMinute(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var log logged
		lines := func(when, part string, want int) {
			f.Helper()
			synctest.Wait()
			text := log.take()
			if got := strings.Count(text, part); got != want {
				f.Errorf("%s %d lines say %q, want %d:\n%s", when, got, part, want, text)
			}
		}
		e := f.env(false)
		s := &shared{Store: f}
		e.Store, e.Log = s, slog.New(slog.NewTextHandler(&log, nil))
		stop := f.background(newWatcher(e, func(error) { f.Error("it stopped the claiming") }).run)
		defer stop()
		time.Sleep(time.Minute)
		lines("without warnings", "level", 0)

		s.says(nil,
			store.Warning{Key: "wal", Text: "the log is long", Attrs: []slog.Attr{slog.Int("log_bytes", 7)}},
			store.Warning{Key: "clock", Text: "the clock was set", Once: true})
		time.Sleep(testTTL / 3)
		lines("at the first look", `level=WARN msg="the log is long" log_bytes=7`, 1)
		time.Sleep(50 * time.Second)
		lines("in the minute after that", "level", 0)
		time.Sleep(3 * time.Minute)
		lines("in three more", "level", 3)

		s.says(store.ErrUnavailable)
		time.Sleep(2 * time.Minute)
		lines("in two minutes of a store that cannot be used", `level=ERROR msg="the store cannot be used"`, 2)
	})
}

// A store that no other process can change is not asked, so that an idle engine sleeps.
func TestWatcherLeavesAStoreOfThisProcessAlone(t *testing.T) {
	inBubble(t, func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		if err := newWatcher(f.env(true), nil).run(ctx); err != nil || time.Since(begun) > 0 {
			f.Errorf("it ended after %v, %v; want at once", time.Since(begun), err)
		}
	})
}
