package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task/event"
)

// A nil argument that must not be nil is named in the error, in place of a nil pointer panic deeper
// down.
func TestNil(t *testing.T) {
	typ := weaver.Define[string, string]("engine.misuse.run.v1")
	for name, tc := range map[string]struct {
		handler func(ctx context.Context) error
		says    string
	}{
		"Step": {func(ctx context.Context) error {
			_, err := weaver.Step[int](ctx, "s", nil)
			return err
		}, `step "s": invalid option: the function is nil`},
		"Do":      {func(ctx context.Context) error { return weaver.Do(ctx, "s", nil) }, `step "s": invalid option: the function is nil`},
		"Cleanup": {func(ctx context.Context) error { return weaver.Cleanup(ctx, "s", nil) }, `step "s": invalid option: the function is nil`},
		"StepTx": {func(ctx context.Context) error {
			_, err := weaver.StepTx[any, int](ctx, "s", nil)
			return err
		}, `step "s": invalid option: the function is nil`},
		"StepOption": {func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(context.Context) error { return nil }, nil)
		}, `step "s": invalid option: an option is nil`},
		"Stream": {func(ctx context.Context) error {
			_, err := weaver.Stream[int](ctx, "s", nil)
			return err
		}, `step "s": invalid option: the function is nil`},
		"PutArtifact": {func(ctx context.Context) error {
			_, err := weaver.PutArtifact(ctx, "a", nil)
			return err
		}, `invalid option: artifact "a": the reader is nil`},
		"ArtifactOption": {func(ctx context.Context) error {
			_, err := weaver.PutArtifact(ctx, "a", strings.NewReader(""), nil)
			return err
		}, `invalid option: artifact "a": an option is nil`},
	} {
		subtest(t, name+" fails the task at once", func(fx *fixture) {
			fx.runConfig(fx.store, weaver.Config{Bucket: blob.NewMemory(), Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				err := tc.handler(ctx)
				wantError(fx, err, weaver.ErrInvalidOption)
				return "", err
			})}})
			te := failure(fx, enqueue(fx, typ, ""))
			equal(fx, "the error", te.Message, tc.says)
			equal(fx, "attempts", te.Attempts, 1)
		})
	}

	t.Run("New refuses it", func(t *testing.T) {
		_, err := weaver.New(memstore.New(), weaver.Config{
			Plugins: []weaver.Plugin{weaver.PluginFunc(nil)},
			Retain:  []weaver.Retention{weaver.Retain(time.Hour)},
		})
		wantError(t, err, weaver.ErrConfig, "Plugins[0] (weaver.PluginFunc): the function is nil")
		_, err = weaver.New(memstore.New(), weaver.Config{Retain: []weaver.Retention{weaver.Retain(time.Hour).Types(typ, nil)}})
		wantError(t, err, weaver.ErrConfig, "Retain[0]", "Types: type 2 is nil")
	})

	t.Run("On panics and says what", func(t *testing.T) {
		eng, err := weaver.New(memstore.New(), weaver.Config{})
		if err != nil {
			t.Fatal(err)
		}
		says := func(want string, fn func()) {
			t.Helper()
			defer func() { equal(t, "the panic", fmt.Sprint(recover()), want) }()
			fn()
		}
		says("weaver.On: the engine is nil", func() { weaver.On(nil, func(event.Event) {}) })
		says("weaver.On: the function is nil", func() { weaver.On[event.Event](eng, nil) })
	})

	subtest(t, "a client's verbs refuse a nil option", func(fx *fixture) {
		h := enqueue(fx, typ, "", weaver.Delay(time.Hour))
		ctx := fx.Context()
		_, prune := fx.client.Prune(ctx, nil, nil)
		_, rerun := fx.client.Rerun(ctx, h.ID(), nil)
		_, many := fx.client.CancelMany(ctx, weaver.Filter{}, nil)
		_, wait := h.Wait(ctx, nil)
		_, job := fx.client.WaitJob(ctx, h.ID(), nil)
		for _, err := range []error{fx.client.Cancel(ctx, h.ID(), nil), prune, rerun, many, wait, job} {
			wantError(fx, err, weaver.ErrInvalidOption, "an option is nil")
		}
		fx.wantState(h.ID(), weaver.StatePending)
	})
}

func TestEmitAfterItsStream(t *testing.T) {
	typ := weaver.Define[string, string]("engine.misuse.emit.v1")
	subtest(t, "is an error, and no chunk", func(fx *fixture) {
		var chunks int
		e := fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			var late func(any) error
			_, err := weaver.Stream(ctx, "tokens", func(_ context.Context, emit func(any) error) (string, error) {
				late = emit
				return "", emit("in time")
			})
			return fmt.Sprint(late("too late")), err
		}))
		weaver.On(e.Engine, func(event.StreamChunk) { chunks++ })
		wantError(fx, errors.New(result(fx, enqueue(fx, typ, ""))), nil, `stream "tokens"`, "has returned", "wait for it")
		equal(fx, "chunks", chunks, 1)
	})
}
