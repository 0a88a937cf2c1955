package weavertest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// worker is an engine of one bubble.
type worker struct {
	*weaver.Engine
	handlers sync.WaitGroup // calls that have not returned
}

func newWorker(s weaver.Store, cfg weaver.Config) (*worker, error) {
	w := new(worker)
	cfg.Middleware = slices.Concat([]func(weaver.HandlerFunc) weaver.HandlerFunc{w.count}, cfg.Middleware)
	var err error
	w.Engine, err = weaver.New(s, cfg)
	return w, err
}

// count counts the calls of a handler.
func (w *worker) count(next weaver.HandlerFunc) weaver.HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		w.handlers.Add(1)
		defer w.handlers.Done()
		return next(ctx, input)
	}
}

// beside runs f while the worker runs, stops it when f has returned, and
// returns its error. f's context ends after forever, and when the worker stops
// by itself. Handlers that outlive the worker are waited for: the bubble could
// not end.
func (w *worker) beside(ctx context.Context, f func(ctx context.Context)) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	limited, cancel := context.WithTimeoutCause(ctx, forever, errForever)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- w.Run(run)
		cancel()
	}()
	f(limited)
	stop()
	err := <-done
	w.handlers.Wait()
	return err
}

// untilIdle runs the worker until nothing is due or running.
func (w *worker) untilIdle(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, forever, errForever)
	defer cancel()
	err := w.RunUntilIdle(limited)
	w.handlers.Wait()
	if limited.Err() != nil {
		return &endlessError{"a handler"}
	}
	return err
}

// engineStore is the store as engines use it here, without ClaimOrWait: an
// engine looks again at least once per lease for what such a claim waits for,
// and each look of an idle month would cost a claim. A claim that is answered
// at once says when the next task is due, and this store notifies of every
// change: an idle engine sleeps until then. Nor has it a feed of events, for which an
// engine looks every hour.
type engineStore struct {
	store.Store
	store.Notifier
	store.StepTxer
	store.EventReader
}

func (e *Env) engineStore() engineStore { return engineStore{e.db, e.db, e.db, e.db} }
