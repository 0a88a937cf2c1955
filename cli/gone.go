package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// A store file that was deleted, moved or replaced takes no more writes. It may come back (a folder renamed by
// mistake), so a verb that runs tasks waits for it before it ends.

const (
	// runGoneAfter is the waiting time of `run`, whose job is only in that file.
	runGoneAfter = 3 * time.Second
	devGoneAfter = time.Minute
	goneEvery    = 500 * time.Millisecond // interval between checks
	goneSaid     = time.Minute            // interval between log lines
)

// errStoreGone ends a verb whose store did not come back.
var errStoreGone = errors.New("the store is gone")

// goneFlag is the flag of verbs that run until they are interrupted.
type goneFlag struct {
	StoreGoneAfter time.Duration `default:"1m" placeholder:"DURATION" help:"Waiting time for a missing store file; default 1m."`
}

func (f goneFlag) check() error {
	if f.StoreGoneAfter < 0 {
		return badInput("", "--store-gone-after %s: want 0s or more", f.StoreGoneAfter)
	}
	return nil
}

// goneStore is implemented by stores in files.
type goneStore interface {
	// Gone returns store.ErrGone after the file was deleted, moved or replaced.
	Gone() error
}

// untilGone runs fn. If the store is gone for the time after, it cancels the context with the cause errStoreGone, and
// returns an error with the exit code of a store instead of fn's error. It logs to warn, which may be nil, once a
// minute that the store is gone.
func (s *session) untilGone(ctx context.Context, st any, after time.Duration, warn *slog.Logger, fn func(context.Context) error) error {
	at, ok := st.(goneStore)
	if !ok {
		return fn(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	g := group.New(context.WithoutCancel(ctx))
	g.Go("store", func(context.Context) error {
		watchStore(ctx, at, after, warn, s.storePlace(), func() { end(errStoreGone) })
		return nil
	})
	err := fn(ctx)
	ended := isStoreGone(ctx)
	end(nil)
	werr := g.Wait()
	switch {
	case ended:
		return badStore("", "%w: %s was deleted, moved or replaced while this command used it, and did not come back within %s: put it back, or run the command again",
			errStoreGone, s.storePlace(), text.Setting(after))
	case errors.Is(err, store.ErrGone):
		return badStore("", "%w: %s was deleted, moved or replaced while this command used it: put it back, or run the command again", errStoreGone, s.storePlace())
	}
	return errors.Join(err, werr)
}

// watchStore calls gone when the store has been gone for the time after, and then returns. It also returns when ctx
// ends.
func watchStore(ctx context.Context, at goneStore, after time.Duration, warn *slog.Logger, name string, gone func()) {
	every := time.NewTicker(goneEvery)
	defer every.Stop()
	var since, said time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		now := time.Now()
		switch err := at.Gone(); {
		case !errors.Is(err, store.ErrGone):
			if !said.IsZero() && warn != nil {
				warn.Warn("the store is back", "store", name)
			}
			since, said = time.Time{}, time.Time{}
			continue
		case since.IsZero():
			since = now
		}
		if now.Sub(since) >= after {
			gone()
			return
		}
		if warn != nil && now.Sub(said) >= goneSaid {
			said = now
			warn.Warn("the store was deleted, moved or replaced: put it back, or start this program again",
				"store", name, "ends_in", (after - now.Sub(since)).Round(time.Second))
		}
	}
}

// isStoreGone reports whether a context ended because the store is gone.
func isStoreGone(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errStoreGone) }
