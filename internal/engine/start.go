package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// startLimit is the timeout of a function of AtStart.
	startLimit = 10 * time.Second
	// startAgain is the delay before a failed function is called again.
	startAgain = 30 * time.Second
)

// atStart calls the functions of AtStart and returns those that failed.
func (e *env) atStart(ctx context.Context, fns []func(context.Context) error) (failed []func(context.Context) error) {
	for _, fn := range fns {
		err := e.callAtStart(ctx, fn)
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil
		}
		e.Log.Warn("work at the start failed; it is done again", "error", err, "after", startAgain)
		failed = append(failed, fn)
	}
	return failed
}

// callAtStart calls one function. A panic is an error.
func (e *env) callAtStart(ctx context.Context, fn func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(ctx)
}

// startLater calls the failed functions until they succeed.
func (e *env) startLater(fns []func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		again := time.NewTimer(startAgain)
		defer again.Stop()
		for len(fns) > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-again.C:
			}
			fns = e.atStart(ctx, fns)
			again.Reset(startAgain)
		}
		return nil
	}
}
