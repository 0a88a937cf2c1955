package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/goweaver/weaver/store"
)

// watcher asks every TTL/3 whether this program can still use the store, and logs the store's warnings. A store with
// complete notices has no other user that could change it, and is not asked.
type watcher struct {
	*env
	stopClaiming context.CancelCauseFunc

	// Accessed by run only, and after its end.
	newer  error                // the schema is newer than this program
	logged map[string]time.Time // when a warning was last logged, by key
}

func newWatcher(e *env, stopClaiming context.CancelCauseFunc) *watcher {
	return &watcher{env: e, stopClaiming: stopClaiming, logged: make(map[string]time.Time)}
}

// warnEvery is the minimum interval between log lines of the same warning.
const warnEvery = time.Minute

func (w *watcher) run(ctx context.Context) error {
	for !w.complete && w.newer == nil {
		wait(ctx, w.lease().Watch(), nil)
		if ctx.Err() != nil {
			return nil
		}
		w.look(ctx)
	}
	return nil
}

// look asks once. When the schema is newer than this program the engine drains, because its writes might not match
// the newer schema.
func (w *watcher) look(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, w.lease().Watch())
	defer cancel()
	err := w.Store.Ready(call)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, store.ErrNewerSchema):
		w.newer = err
		w.Log.Error("the store was migrated by a newer version of this program: draining", "error", err)
		w.stopClaiming(err)
	case w.isDue("ready"):
		w.Log.Error("the store cannot be used", "error", err)
	}
	for _, warning := range w.Store.Warnings(call) {
		key := "warning " + warning.Key
		if _, logged := w.logged[key]; logged && warning.Once {
			continue
		}
		if w.isDue(key) {
			w.Log.LogAttrs(ctx, slog.LevelWarn, warning.Text, warning.Attrs...)
		}
	}
}

// isDue reports whether a warning may be logged again, and records that it was.
func (w *watcher) isDue(key string) bool {
	last, ok := w.logged[key]
	if ok && time.Since(last) < warnEvery {
		return false
	}
	w.logged[key] = time.Now()
	return true
}
