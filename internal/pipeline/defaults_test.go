package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pipeline"
)

// timeout and retry of the file apply to each task without its own.
func TestDefaults(t *testing.T) {
	t.Parallel()
	p := parse(t, `
name: a
timeout: 5m
retry: {max_attempts: 4, base: 1s, max: 1m}
tasks:
  plain: {run: ls}
  own: {run: ls, timeout: 7s, retry: {max_attempts: 2, base: 3s, max: 9s}}
  part: {run: ls, retry: {base: 3s}}
  call: {http: {url: "http://h/", timeout: 2s}}
  charge: {type: acme.billing.charge.v1, input: {amount: 1}}
`)
	type options struct {
		attempts           int
		base, max, timeout time.Duration
	}
	got := submit(t, p, pipeline.JobOptions{Types: knownTypes()}).tasks
	for name, want := range map[string]options{
		"plain":  {4, time.Second, time.Minute, 5 * time.Minute},
		"own":    {2, 3 * time.Second, 9 * time.Second, 7 * time.Second},
		"part":   {4, 3 * time.Second, time.Minute, 5 * time.Minute},
		"call":   {4, time.Second, time.Minute, 5 * time.Minute},
		"charge": {4, time.Second, time.Minute, 5 * time.Minute},
	} {
		n := got[name]
		equal(t, name, options{n.MaxAttempts, n.Backoff, n.BackoffMax, n.Timeout}, want)
	}
	// Pauses without max_attempts apply to tasks that set max_attempts.
	pauses := submit(t, parse(t, "name: a\nretry: {base: 9s}\ntasks: {a: {run: ls, retry: {max_attempts: 2}}, b: {run: ls}}\n"), pipeline.JobOptions{}).tasks
	equal(t, "pauses of a", pauses["a"].Backoff, 9*time.Second)
	equal(t, "attempts of b", pauses["b"].MaxAttempts, 1)
	// Neither the order of the keys nor the place of max_attempts counts.
	same := parse(t, "name: a\ntasks: {a: {run: ls, timeout: 1s, retry: {base: 2s}}}\nretry: {max: 9s}\nbudget: {max_attempts_per_task: 3}\n")
	written := parse(t, "name: a\nbudget: {max_attempts_per_task: 3}\ntasks: {a: {run: ls, timeout: 1s, retry: {max_attempts: 3, base: 2s, max: 9s}}}\n")
	equal(t, "digest", same.Digest(), written.Digest())
}

// More attempts than the budget allows are a warning.
func TestAttemptsAboveTheBudget(t *testing.T) {
	t.Parallel()
	p := parse(t, "name: a\nretry: {max_attempts: 4}\nbudget: {max_attempts_per_task: 3}\ntasks:\n  a: {run: x, retry: {max_attempts: 5}}\n  b: {run: x, retry: {max_attempts: 3}}\n")
	var got []string
	for _, w := range p.Warnings.Problems {
		got = append(got, fmt.Sprintf("%d: %s", w.Line, w.Message))
	}
	equal(t, "the warnings", strings.Join(got, "\n"),
		"2: max_attempts of retry of the pipeline is 4, and max_attempts_per_task of the budget (line 3) is 3, which is what counts\n"+
			`5: max_attempts of retry of task "a" is 5, and max_attempts_per_task of the budget (line 3) is 3, which is what counts`)
}
