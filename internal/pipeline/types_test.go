package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
)

type bill struct {
	Amount int `json:"amount"`
}

func (b bill) Validate() error {
	if b.Amount < 1 {
		return errors.New("the amount is not positive")
	}
	return nil
}

// knownTypes returns the types of a program: one with options, one without, and
// builtin ones.
func knownTypes() map[string]weaver.Handler {
	charge := weaver.Define[bill, weaver.None]("acme.billing.charge.v1", weaver.Queue("billing"), weaver.MaxAttempts(4), weaver.Backoff(time.Minute), weaver.Timeout(time.Hour))
	plain := weaver.Define[bill, weaver.None]("acme.billing.plain.v1")
	run := func(context.Context, bill) (weaver.None, error) { return weaver.None{}, nil }
	known := map[string]weaver.Handler{charge.Name(): charge.Handler(run), plain.Name(): plain.Handler(run)}
	for _, h := range builtin.Handlers(builtin.Config{}) {
		known[h.Name()] = h
	}
	return known
}

// A task of a known type has the options of its type unless the file overrides
// them.
func TestTypeOptions(t *testing.T) {
	t.Parallel()
	type options struct {
		queue    string
		attempts int
		backoff  time.Duration
		timeout  time.Duration
	}
	const own = "own@1"
	for src, want := range map[string]options{
		"type: acme.billing.charge.v1, input: {amount: 1}":                                     {"billing", 4, time.Minute, time.Hour},
		"type: acme.billing.charge.v1, input: {amount: 1}, timeout: 5s":                        {"billing", 4, time.Minute, 5 * time.Second},
		"type: acme.billing.charge.v1, input: {amount: 1}, retry: {max_attempts: 1}":           {"billing", 1, time.Minute, time.Hour},
		"type: acme.billing.charge.v1, input: {amount: 1}, retry: {max_attempts: 9, base: 1s}": {"billing", 9, time.Second, time.Hour},
		"type: acme.billing.plain.v1, input: {amount: 1}":                                      {own, 5, 2 * time.Second, 0},
		"type: weaver.exec.run.v1, input: {shell: echo}":                                       {own, 1, 2 * time.Second, 0},
		"type: acme.unknown.type.v1":                                                           {own, 1, 2 * time.Second, 0},
		"run: echo":                                                                            {own, 1, 2 * time.Second, 0},
	} {
		p, err := pipeline.ParseGiven([]byte("name: a\ntasks: {a: {"+src+"}}\n"), pipeline.Given{Types: pipeline.Types{Known: knownTypes()}})
		if err != nil {
			t.Fatal(err)
		}
		got := submit(t, p, pipeline.JobOptions{Queue: own, Types: knownTypes()}).tasks["a"]
		equal(t, src, options{got.Queue, got.MaxAttempts, got.Backoff, got.Timeout}, want)
	}
	p := parse(t, "name: a\nbudget: {max_attempts_per_task: 3}\ntasks: {a: {type: acme.billing.charge.v1, input: {amount: 1}}}\n")
	equal(t, "attempts under a budget", submit(t, p, pipeline.JobOptions{Types: knownTypes()}).tasks["a"].MaxAttempts, 3)
}

// Inputs are checked by their types, at their place.
func TestTypeInputs(t *testing.T) {
	t.Parallel()
	unknown := func(name string) (string, string) {
		if name == "acme.announced.type.v1" {
			return "", ""
		}
		return "which nobody has", "ask around"
	}
	for src, want := range map[string]string{
		"type: acme.billing.charge.v1\n    input: {amount: 1}": "",
		"type: acme.billing.charge.v1\n    input: {amuont: 1}": `5:12 task "a": invalid input of acme.billing.charge.v1: there is no field "amuont" (did you mean "amount"?)`,
		"type: acme.billing.charge.v1\n    input: {amount: 0}": `5:12 task "a": invalid input of acme.billing.charge.v1: the amount is not positive`,
		"type: acme.billing.charge.v1":                         `4:11 task "a": invalid input of acme.billing.charge.v1: the amount is not positive`,
		"type: acme.billing.chrage.v1\n    input: {amount: 1}": `4:11 task "a" is of type acme.billing.chrage.v1, which nobody has`,
		"type: acme.announced.type.v1\n    input: [whatever]":  "",
		"type: weaver.exec.run.v1\n    input: {shel: echo}":    `5:12 task "a": invalid input of weaver.exec.run.v1: there is no field "shel" (did you mean "shell"?)`,
	} {
		p, err := pipeline.ParseGiven([]byte("name: a\ntasks:\n  a:\n    "+src+"\n"), pipeline.Given{Types: pipeline.Types{Known: knownTypes(), Unknown: unknown}})
		var e *pipeline.Error
		switch {
		case want == "" && err == nil && p != nil:
		case !errors.As(err, &e) || len(e.Problems) != 1:
			t.Errorf("%s: %v, want one problem %q", src, err, want)
		default:
			got := e.Problems[0]
			if line := fmt.Sprintf("%d:%d %s", got.Line, got.Column, got.Message); line != want {
				t.Errorf("%s:\n%s\nwant\n%s", src, line, want)
			}
			if strings.Contains(want, "nobody") && got.Hint != "ask around" {
				t.Errorf("%s: the hint is %q", src, got.Hint)
			}
		}
	}
}

// The source of the number of attempts is part of the digest.
func TestDigestOfTypeAttempts(t *testing.T) {
	t.Parallel()
	without := parse(t, "name: a\ntasks: {a: {type: acme.billing.charge.v1}}").Digest()
	with := parse(t, "name: a\ntasks: {a: {type: acme.billing.charge.v1, retry: {max_attempts: 1}}}").Digest()
	if without == with {
		t.Error("a file that says how often a type is tried has the digest of one that does not")
	}
}
