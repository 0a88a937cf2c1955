package weaver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
)

// wantLine fails the test unless exactly one line has the message, with these
// fields and those that name the attempt.
func (fx *fixture) wantLine(message string, of weaver.TaskInfo, fields map[string]any) {
	fx.Helper()
	lines := fx.log.lines(fx, message)
	if len(lines) != 1 {
		fx.Fatalf("%d lines %q, want 1: %v", len(lines), message, lines)
	}
	fields["task_id"], fields["task_type"], fields["attempt_no"] = of.ID.String(), of.Type, float64(of.AttemptNo)
	for key, want := range fields {
		equal(fx, key+" of line "+message, lines[0][key], want)
	}
}

func TestLogOfAttempts(t *testing.T) {
	typ := weaver.Define[int, int]("engine.log.run.v1", weaver.MaxAttempts(2), weaver.Backoff(time.Minute))

	subtest(t, "an attempt that failed is a warning that says what follows", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, int) (int, error) { return 0, errors.New("card refused") }))
		h := enqueue(fx, typ, 1)
		synctest.Wait()
		fx.wantLine("attempt failed", fx.get(h.ID()), map[string]any{
			"level": "WARN", "error": "card refused", "error_kind": "handler_error", "state": "pending",
		})
		if retryIn, _ := fx.log.lines(fx, "attempt failed")[0]["retry_in"].(float64); retryIn <= 0 {
			fx.Errorf("retry_in = %v, want the delay", retryIn)
		}
		fails(fx, h)
		synctest.Wait()
		last := fx.log.lines(fx, "attempt failed")[1]
		equal(fx, "the state after the last attempt", last["state"], any("failed"))
		equal(fx, "retry_in of the last attempt", last["retry_in"], nil)
	})

	subtest(t, "a panic is an error with its stack", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, int) (int, error) { panic("boom") }))
		h := enqueue(fx, typ, 1)
		synctest.Wait()
		fx.wantLine("attempt panicked", fx.get(h.ID()), map[string]any{"level": "ERROR", "error_kind": "panic", "state": "pending"})
		if stack, _ := fx.log.lines(fx, "attempt panicked")[0]["stack"].(string); !strings.Contains(stack, "log_test.go") {
			fx.Errorf("the stack does not name the handler's file: %q", stack)
		}
		equal(fx, "warnings beside it", len(fx.log.lines(fx, "attempt failed")), 0)
	})

	subtest(t, "a block is a warning", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, int) (int, error) { return 0, weaver.Blocked("who pays?") }))
		h := enqueue(fx, typ, 1)
		blocks(fx, h)
		synctest.Wait() // the log comes after the commit
		fx.wantLine("task blocked", fx.get(h.ID()), map[string]any{"level": "WARN", "error": "who pays?"})
	})

	subtest(t, "what did not fail is not logged", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			if n == 1 {
				return n, weaver.Sleep(ctx, "nap", time.Second)
			}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}))
		result(fx, enqueue(fx, typ, 1))
		h := enqueue(fx, typ, 2)
		synctest.Wait()
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		synctest.Wait()
		for _, message := range []string{"attempt failed", "attempt panicked", "task blocked"} {
			equal(fx, message, len(fx.log.lines(fx, message)), 0)
		}
	})
}

// A handler that does not return after the end of its context holds its slot, its key and its lease,
// and is logged each minute.
func TestLogOfIgnoredContexts(t *testing.T) {
	const message = "a handler ignores the end of its context"
	for name, c := range map[string]struct {
		opts  []weaver.EnqueueOption
		end   func(fx *fixture, id weaver.TaskID)
		cause string
	}{
		"timeout":  {[]weaver.EnqueueOption{weaver.Timeout(time.Second)}, nil, "timed out"},
		"deadline": {[]weaver.EnqueueOption{weaver.ExpireAfter(time.Second)}, nil, "deadline"},
		"cancel": {nil, func(fx *fixture, id weaver.TaskID) {
			time.Sleep(time.Second)
			fx.must(fx.client.Cancel(fx.Context(), id))
		}, "cancelled"},
	} {
		subtest(t, name, func(fx *fixture) {
			typ := weaver.Define[int, int]("engine.log.ignoring.v1")
			leaves := make(chan struct{})
			leave := sync.OnceFunc(func() { close(leaves) })
			defer leave()
			fx.run(typ.Handler(func(context.Context, int) (int, error) {
				<-leaves
				return 1, nil
			}))
			h := enqueue(fx, typ, 1, c.opts...)
			synctest.Wait()
			if c.end != nil {
				c.end(fx, h.ID())
			}
			time.Sleep(time.Minute - 500*time.Millisecond)
			equal(fx, "lines before a minute is over", len(fx.log.lines(fx, message)), 0)
			time.Sleep(2*time.Second + 2*time.Minute)
			lines := fx.log.lines(fx, message)
			if len(lines) != 3 {
				fx.Fatalf("%d lines in three minutes, want 3: %v", len(lines), lines)
			}
			for i, line := range lines {
				equal(fx, "level", line["level"], any("WARN"))
				equal(fx, "task_id", line["task_id"], any(h.ID().String()))
				equal(fx, "task_type", line["task_type"], any(typ.Name()))
				equal(fx, "attempt_no", line["attempt_no"], any(1.0))
				age, _ := line["since"].(float64)
				near(fx, "its age", time.Duration(age), time.Duration(i+1)*time.Minute)
				wantError(fx, errors.New(line["cause"].(string)), nil, c.cause)
			}
			leave()
			synctest.Wait()
			time.Sleep(time.Hour)
			equal(fx, "lines after it returned", len(fx.log.lines(fx, message)), 3)
		})
	}

	subtest(t, "a handler that returns in time is not named", func(fx *fixture) {
		typ := weaver.Define[int, int]("engine.log.good.v1", weaver.Timeout(time.Second), weaver.NoRetry())
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}))
		fails(fx, enqueue(fx, typ, 1))
		time.Sleep(time.Hour)
		equal(fx, "lines", len(fx.log.lines(fx, message)), 0)
	})
}

func TestLogOfQueuesThatAreNotServed(t *testing.T) {
	const message = "no queue of this engine holds the tasks of a type that it handles: they wait for another worker"
	billed := weaver.Define[int, int]("engine.log.billed.v1", weaver.Queue("billing"))
	plain := weaver.Define[int, int]("engine.log.plain.v1")
	run := func(context.Context, int) (int, error) { return 0, nil }
	for name, c := range map[string]struct {
		queues map[string]int
		want   string
	}{
		"every queue":  {nil, ""},
		"both queues":  {map[string]int{"billing": 1, "default": 1}, ""},
		"only default": {map[string]int{"default": 1}, billed.Name()},
		"only billing": {map[string]int{"billing": 1}, plain.Name()},
	} {
		subtest(t, name, func(fx *fixture) {
			fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{billed.Handler(run), plain.Handler(run)}, Queues: c.queues})
			lines := fx.log.lines(fx, message)
			if c.want == "" {
				equal(fx, "warnings", len(lines), 0)
				return
			}
			if len(lines) != 1 || lines[0]["task_type"] != c.want || lines[0]["level"] != "WARN" {
				fx.Fatalf("the log has %v, want one warning about %s", lines, c.want)
			}
			wantError(fx, errors.New(lines[0]["queue"].(string)), nil, map[string]string{billed.Name(): "billing", plain.Name(): "default"}[c.want])
		})
	}
}
