package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

func TestTaskErrorSaysNothingTwice(t *testing.T) {
	const id = "01JCZ000000000000000000000"
	parsed, err := task.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]weaver.TaskError{
		"failed after 5 attempts: handler_error: boom":           {State: weaver.StateFailed, Attempts: 5, Kind: task.KindHandler, Message: "boom"},
		"failed after 1 attempt: timeout: the attempt timed out": {State: weaver.StateFailed, Attempts: 1, Kind: task.KindTimeout, Message: "the attempt timed out"},
		"failed after 2 attempts: panic: index out of range":     {State: weaver.StateFailed, Attempts: 2, Kind: task.KindPanic, Message: "panic: index out of range"},
		`failed after 2 attempts: step "s": panic: oh`:           {State: weaver.StateFailed, Attempts: 2, Kind: task.KindPanic, Message: `step "s": panic: oh`, FailedStep: "s"},
		"cancelled after 0 attempts: x":                          {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled: x"},
		"cancelled after 0 attempts: by ann: x":                  {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled by ann: x"},
		"cancelled after 0 attempts":                             {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled"},
		"cancelled after 0 attempts: deadline: it has passed":    {State: weaver.StateCancelled, Kind: task.KindDeadline, Message: "it has passed"},
		"failed after 3 attempts":                                {State: weaver.StateFailed, Attempts: 3},
	} {
		e.ID, e.Type = parsed, "a.b.c.v1"
		if got := e.Error(); got != "task "+id+" (a.b.c.v1) "+want {
			t.Errorf("%q, want …%q", got, want)
		}
	}
}

// The error of an operator's verb has the argument and the reason once.
func TestRefusalsSayNothingTwice(t *testing.T) {
	typ := weaver.Define[string, string]("engine.errors.refused.v1")
	inBubble(t, func(fx *fixture) {
		ready := enqueue(fx, typ, "").ID()
		absent := weaver.TaskID{7}
		ctx, c := fx.Context(), fx.client
		_, historyErr := c.History(ctx, absent)
		_, cancelErr := c.CancelJob(ctx, absent)
		for want, err := range map[string]error{
			fmt.Sprintf("retry: task %s is ready, only failed or cancelled tasks can be retried", ready): c.Retry(ctx, ready),
			fmt.Sprintf("unblock: task %s is ready, only blocked tasks can be unblocked", ready):         c.Unblock(ctx, ready, nil),
			fmt.Sprintf("delete: task %s is ready, only tasks that ended can be deleted", ready):         c.Delete(ctx, ready),
			fmt.Sprintf("cancel: task %s: not found", absent):                                            c.Cancel(ctx, absent),
			fmt.Sprintf("cancel: job %s: not found", absent):                                             cancelErr,
			fmt.Sprintf(`task %s in namespace "default": not found`, absent):                             historyErr,
		} {
			if err == nil || err.Error() != want {
				fx.Errorf("%q, want %q", err, want)
			}
		}
		wantError(fx, c.Retry(ctx, ready), weaver.ErrState)
		wantError(fx, historyErr, weaver.ErrNotFound)
		wantError(fx, cancelErr, weaver.ErrNotFound)
	})
}

// The failure of an attempt names its step, its limit and its cause once.
func TestFailuresSayNothingTwice(t *testing.T) {
	typ := weaver.Define[string, string]("engine.errors.failed.v1", weaver.NoRetry())
	step := func(fn func(context.Context) (any, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := weaver.Step(ctx, "save", fn)
			return err
		}
	}
	for want, handler := range map[string]func(context.Context) error{
		"timeout: the attempt timed out after 1s": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"timeout: the attempt timed out after 1s: get http://x: context deadline exceeded": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("get http://x: %w", ctx.Err())
		},
		`panic: boom`:              func(context.Context) error { panic("boom") },
		`step "save": panic: boom`: step(func(context.Context) (any, error) { panic("boom") }),
		`validation_error: step "save": the value cannot be stored: $: contains a NUL character`: step(func(context.Context) (any, error) { return "\x00", nil }),
		`validation_error: step "save": the value is 70002 bytes, over the inline limit of 65536: set Config.Bucket to keep it there, return less, or raise Config.InlineLimit`: step(func(context.Context) (any, error) {
			return strings.Repeat("x", 70000), nil
		}),
		`handler_error: step "save": wrong transaction type for this store: the function wants a *int: give it a *sql.Tx, which SQLite and PostgreSQL have, or on PostgreSQL a pgx.Tx; this store (sqlite) gave a *sql.Tx`: func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "save", func(context.Context, *int) (int, error) { return 0, nil })
			return err
		},
	} {
		sqlSubtest(t, want, func(fx *fixture) {
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return "", handler(ctx) }))
			h := enqueue(fx, typ, "", weaver.Timeout(time.Second))
			equal(fx, "the error", failure(fx, h).Error(), fmt.Sprintf("task %s (%s) failed after 1 attempt: %s", h.ID(), typ.Name(), want))
		})
	}
	subtest(t, "a blocked task", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) { return "", weaver.Blocked("who pays?") }))
		h := enqueue(fx, typ, "")
		equal(fx, "the error", blocked(fx, h).Error(), fmt.Sprintf("task %s (%s): the task is blocked: who pays?", h.ID(), typ.Name()))
	})
}

// noJob is passed to Submit in place of a job.
func TestSubmitNil(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		_, err := fx.client.Submit(fx.Context(), nil)
		wantError(fx, err, weaver.ErrInvalidJob, "nil", "NewJob")
	})
}

// checkedPointer and checkedValue validate themselves, but panic on a nil pointer.
type (
	checkedPointer struct{ N int }
	checkedValue   struct{ N int }
	optional       struct{ N int }
)

func (c *checkedPointer) Validate() error { return positive(c.N) }
func (c checkedValue) Validate() error    { return positive(c.N) }
func (c *optional) Validate() error {
	if c == nil {
		return nil
	}
	return positive(c.N)
}

func positive(n int) error {
	if n < 1 {
		return errors.New("N is too small")
	}
	return nil
}

func TestValidateOfNilPointers(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		_, err := weaver.Define[*checkedPointer, weaver.None]("invalid.nil.pointer.v1").Enqueue(fx.Context(), fx.client, nil)
		wantError(fx, err, weaver.ErrInvalidInput, "nil *weaver_test.checkedPointer")
		_, err = weaver.Define[*checkedValue, weaver.None]("invalid.nil.value.v1").Enqueue(fx.Context(), fx.client, nil)
		wantError(fx, err, weaver.ErrInvalidInput, "nil *weaver_test.checkedValue")
		_, err = weaver.Define[*optional, weaver.None]("invalid.nil.optional.v1").Enqueue(fx.Context(), fx.client, nil)
		fx.must(err)

		typ := weaver.Define[weaver.None, *checkedPointer]("invalid.nil.output.v1")
		fx.run(typ.Handler(func(context.Context, weaver.None) (*checkedPointer, error) { return nil, nil }))
		te := failure(fx, enqueue(fx, typ, weaver.None{}))
		equal(fx, "kind", te.Kind, task.KindValidation)
	})
}

// The error of a read-only transaction does not talk about file permissions.
func TestInTxOfAReadOnlyTransaction(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.tx.readonly.v1")
	inBubble(t, func(fx *fixture) {
		db := openMemory(fx)
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		fx.must(err)
		tx, err := db.DB().BeginTx(fx.Context(), &sql.TxOptions{ReadOnly: true})
		fx.must(err)
		defer func() { _ = tx.Rollback() }()
		_, err = typ.Enqueue(fx.Context(), client.InTx(sqlite.Tx(tx)), "")
		wantError(fx, err, nil, "the transaction is read-only", "sql.TxOptions")
		if strings.Contains(err.Error(), "permissions") || errors.Is(err, store.ErrReadOnly) {
			fx.Errorf("%q blames the store", err)
		}
	})
}

// An engine ends when its store is closed.
func TestRunOnAClosedStore(t *testing.T) {
	typ := weaver.Define[string, string]("engine.errors.closed.v1")
	inBubble(t, func(fx *fixture) {
		db, err := sqlite.OpenMemory(fx.Context())
		fx.must(err)
		fx.must(db.Migrate(fx.Context()))
		eng := fx.start(db, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) { return "", nil })}})
		time.Sleep(time.Second)
		fx.must(db.Close())
		time.Sleep(time.Minute)
		select {
		case <-eng.ended:
		default:
			fx.Error("a minute after its store was closed the engine still runs")
		}
		err = eng.stop()
		wantError(fx, err, store.ErrClosed, "close it after Run")
		if n := strings.Count(err.Error(), "closed"); n > 1 {
			fx.Errorf("%q says it %d times", err, n)
		}
		err = eng.Run(fx.Context())
		wantError(fx, err, store.ErrClosed)
		if strings.Contains(err.Error(), "no more operations") {
			fx.Errorf("%q says it twice", err)
		}
	})
}
