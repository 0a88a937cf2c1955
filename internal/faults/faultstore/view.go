package faultstore

import (
	"context"
	"encoding/json"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
)

// Store returns the process's view of the store.
func (p *Process) Store() store.Store {
	return storehook.New(p.inner, &storehook.Hooks{
		Around: p.call,
		Join: func(_ context.Context, w store.WorkerInfo, next func() (storehook.None, error)) (storehook.None, error) {
			p.mu.Lock()
			p.workers = append(p.workers, w.ID)
			p.mu.Unlock()
			return next()
		},
		StepTx: p.stepTx,
		Notify: p.notify,
	})
}

// call makes one call and injects the plan's fault.
func (p *Process) call(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
	s, err := p.enter(c.Method)
	if err != nil {
		return err
	}
	switch s.Fault {
	case ErrorBefore:
		err = s.err()
	case CrashBefore:
		p.Die()
	default:
		bound, release := p.bound(ctx)
		err = next(bound)
		release()
	}
	switch s.Fault {
	case ReplyLost:
		err = s.err()
	case CrashAfter:
		p.Die()
	}
	if dead := p.leave(); dead != nil {
		return dead
	}
	return err
}

// stepTx injects faults inside a StepTx: before the function runs, and between the
// function and the commit.
func (p *Process) stepTx(_ context.Context, c *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
	run := c.Func
	c.Func = func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		if err := p.moment(StepTxBegun); err != nil {
			return nil, err
		}
		value, err := run(ctx, tx)
		if err == nil {
			err = p.moment(StepTxRan)
		}
		return value, err
	}
	return next()
}

// moment is a point inside a call. Its error rolls the transaction back.
func (p *Process) moment(name string) error {
	s, err := p.enter(name)
	if err != nil {
		return err
	}
	switch s.Fault {
	case ErrorBefore:
		err = s.err()
	case CrashBefore:
		p.Die()
	}
	if dead := p.leave(); dead != nil {
		return dead
	}
	return err
}

// notify registers fn with the store below. A dead process gets no notices.
func (p *Process) notify(fn func(store.Notice), next func(func(store.Notice)) (func(), bool)) (stop func(), complete bool) {
	s, err := p.enter("Notify")
	if err != nil {
		return func() {}, false
	}
	stop, complete = func() {}, false
	if s.Fault == CrashBefore {
		p.Die()
	} else {
		stop, complete = next(func(notice store.Notice) {
			if !p.Died() {
				fn(notice)
			}
		})
	}
	if s.Fault == CrashAfter {
		p.Die()
	}
	_ = p.leave() // a dead process learns of its death at the next call
	return stop, complete
}
