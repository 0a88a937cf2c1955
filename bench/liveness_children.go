package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Parents with many children, for [growing]. They are not served by an engine.

const manyChildren = 10_000

// parent enqueues a task and claims it.
func (l *largeJob) parent(ctx context.Context) error {
	h, err := rootType.Enqueue(ctx, l.client, 0)
	if err != nil {
		return err
	}
	l.root = h.ID()
	got, err := l.claim(ctx, rootType.Name(), 1)
	if err == nil && len(got) != 1 {
		err = errors.New("the parent is not claimable")
	}
	if err == nil {
		l.claimed = got[0]
	}
	return err
}

func children(n int) []task.New {
	list, ids := make([]task.New, n), task.NewIDs(rand.Reader)
	for i := range list {
		list[i] = task.New{
			ID: ids.New(), Type: heldType.Name(), Queue: task.DefaultQueue, Input: json.RawMessage("1"), SchemaVersion: 1, Priority: task.DefaultPriority,
			MaxAttempts: task.DefaultMaxAttempts, MaxRepairs: task.DefaultMaxRepairs, Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
		}
	}
	return list
}

func (l *largeJob) finish(ctx context.Context, f store.Finish) error {
	f.Lease, f.CodeVersion = l.claimed.Lease, 1
	got, err := l.db.Finish(ctx, weaver.DefaultNamespace, f)
	if err == nil {
		err = got[0].Err
	}
	return err
}

func (l *largeJob) decompose(ctx context.Context) error {
	return l.finish(ctx, store.Finish{Outcome: task.OutcomeDecompose, Join: task.JoinRerun, Children: children(manyChildren)})
}

func (l *largeJob) decomposed(ctx context.Context) error {
	return errors.Join(l.parent(ctx), l.decompose(ctx))
}

func (l *largeJob) cancelRoot(ctx context.Context) error { return l.client.Cancel(ctx, l.root) }

func (l *largeJob) cancelledParent(ctx context.Context) error {
	if err := errors.Join(l.decomposed(ctx), l.cancelRoot(ctx)); err != nil {
		return err
	}
	return l.reapAll(ctx)
}

func (l *largeJob) call(ctx context.Context) error {
	list := children(manyChildren)
	for at := 0; at < len(list); at += task.MaxCallTasks {
		step := task.Step{Name: "all", Kind: task.KindCall, State: task.StepWaiting, Try: 1, ChildrenLeft: len(list), ChildrenStored: at}
		got, err := l.db.Record(ctx, weaver.DefaultNamespace, store.Record{Lease: l.claimed.Lease, Step: &step, Tasks: list[at : at+task.MaxCallTasks]})
		if err == nil {
			err = got[0].Err
		}
		if err != nil {
			return err
		}
	}
	return l.finish(ctx, store.Finish{Outcome: task.OutcomeSuspended, Waiting: task.WaitChildren})
}

func (l *largeJob) cancelledCaller(ctx context.Context) error {
	if err := errors.Join(l.parent(ctx), l.call(ctx), l.cancelRoot(ctx)); err != nil {
		return err
	}
	return l.reapAll(ctx)
}

// reapAll completes the chores of reapers.
func (l *largeJob) reapAll(ctx context.Context) error {
	for {
		got, err := l.db.Reap(ctx, weaver.DefaultNamespace, store.ReapRequest{Worker: "bench", TTL: time.Minute})
		if err != nil || !got.Chores {
			return err
		}
	}
}
