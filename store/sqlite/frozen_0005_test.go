package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

// work0005 was written by the last program before migration 0006, commit 942a152.
var work0005 = frozenWork{
	file:   "testdata/0005.db",
	handle: handle0005,
	fills:  fill0005,
	goOn: func(p *frozenProgram) {
		if err := p.eng.Unblock(p.Context(), p.found["blocks"], "yes"); err != nil {
			p.Error(err)
		}
	},
	states: map[string]string{
		"ends": "succeeded ", "part that ends": "succeeded ", "part of all": "pending sleep",
		"runs": "running ", "has the key": "running ", "wants the key": "ready ",
		"sleeps": "pending sleep", "retries": "pending retry", "is due later": "pending delay", "blocks": "blocked manual",
		"decomposes": "pending children", "part that sleeps": "pending sleep", "completes": "pending children",
		"sleeps first": "pending sleep", "comes after": "pending deps",
	},
	ends: map[string]string{
		"ends": "old old", "part that ends": "old old", "part of all": "old new",
		"runs": "old new", "has the key": "old new", "wants the key": "new new",
		"sleeps": "old new", "retries": "old new", "is due later": "new new", "blocks": "old yes new",
		"decomposes": "old (old old) (old new) new", "part that sleeps": "old new", "completes": "old",
		"sleeps first": "old new", "comes after": "new new",
	},
}

// A file of 0005, with tasks that run, sleep, wait for a key, a need, a retry or children,
// upgrades and continues.
func TestFrozenWorkOf0005(t *testing.T) {
	t.Parallel()
	work0005.test(t)
}

func fill0005(p *frozenProgram) {
	for _, kind := range []string{"ends", "runs", "sleeps", "retries", "blocks", "decomposes", "completes"} {
		p.enqueue(kind)
	}
	p.enqueue("is due later", weaver.Delay(time.Hour))
	p.enqueue("has the key", weaver.ConcurrencyKey("k", 1))
	time.Sleep(time.Second)
	p.enqueue("wants the key", weaver.ConcurrencyKey("k", 1))
	j := weaver.NewJob("nightly")
	j.Add("after", frozenType.With("comes after"), weaver.Needs(j.Add("first", frozenType.With("sleeps first"))))
	if _, err := p.eng.Submit(p.Context(), j); err != nil {
		p.Fatal(err)
	}
}

func handle0005(ctx context.Context, p *frozenProgram, kind string) (string, error) {
	switch kind {
	case "runs", "has the key":
		if p.name == "old" {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
	case "sleeps", "sleeps first", "part that sleeps", "part of all":
		return "", weaver.Sleep(ctx, "nap", time.Hour)
	case "retries":
		if p.name == "old" {
			return "", weaver.RetryAfter(time.Hour, errors.New("not yet"))
		}
	case "blocks":
		if word, ok, err := weaver.UnblockInput[string](ctx); ok || err != nil {
			return " " + word, err
		}
		return "", weaver.Blocked("a person looks")
	case "decomposes":
		children, err := weaver.Children(ctx)
		if err != nil || len(children) == 0 {
			return "", errors.Join(err, weaver.Decompose(weaver.JoinRerun, frozenType.With("part that ends"), frozenType.With("part that sleeps")))
		}
		text := ""
		for _, c := range children {
			out, err := frozenType.OutputOf(c)
			if err != nil {
				return "", err
			}
			text += " (" + out + ")"
		}
		return text, nil
	case "completes":
		return "old", weaver.Decompose(weaver.JoinComplete, frozenType.With("part of all"))
	}
	return "", nil
}
