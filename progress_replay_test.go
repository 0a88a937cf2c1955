package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task/event"
)

// A replayed handler reports from the start again; higher progress of an earlier attempt stays.
func TestProgressInAReplay(t *testing.T) {
	typ := weaver.Define[string, string]("engine.replayed.run.v1")
	again := errors.New("again")
	nothing := func(context.Context) error { return nil }
	step := func(ctx context.Context, name string) error {
		time.Sleep(time.Second) // so that no report is coalesced with the next
		return weaver.Do(ctx, name, nothing)
	}

	for name, c := range map[string]struct {
		run  func(ctx context.Context, attempt int) error
		want string
	}{
		"continues where it was, after a sleep and after a failure": {func(ctx context.Context, attempt int) error {
			for i := range 6 {
				if err := step(ctx, fmt.Sprint("part ", i)); err != nil {
					return err
				}
				if err := weaver.Progress(ctx, float64(i+1), 6); err != nil {
					return err
				}
				if i == 1 {
					if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
						return err
					}
				}
				if i == 3 && attempt == 2 {
					return again
				}
			}
			return nil
		}, "1/6 2/6 3/6 4/6 4/6 5/6 6/6"},
		"does not show its earlier phases again": {func(ctx context.Context, attempt int) error {
			for _, phase := range []string{"load", "check", "send"} {
				for i := range 3 {
					if err := errors.Join(step(ctx, fmt.Sprint(phase, i)), weaver.Progress(ctx, float64(i), 3, phase)); err != nil {
						return err
					}
				}
				if phase == "check" && attempt == 1 {
					return again
				}
			}
			return nil
		}, "0/3 load 1/3 load 2/3 load 0/3 check 1/3 check 2/3 check 2/3 check 0/3 send 1/3 send 2/3 send"},
		"does not go back in the part that runs again": {func(ctx context.Context, attempt int) error {
			if err := step(ctx, "open"); err != nil {
				return err
			}
			for i := range 5 {
				time.Sleep(time.Second)
				if err := weaver.Progress(ctx, float64(i), 5); err != nil {
					return err
				}
				if i == 3 && attempt == 1 {
					return again
				}
			}
			return step(ctx, "close")
		}, "0/5 1/5 2/5 3/5 3/5 4/5"},
		"may start over within an attempt": {func(ctx context.Context, attempt int) error {
			return errors.Join(step(ctx, "a"), weaver.Progress(ctx, 9, 9), step(ctx, "b"), weaver.Progress(ctx, 1, 9))
		}, "9/9 1/9"},
		"starts over where nothing is replayed": {func(ctx context.Context, attempt int) error {
			for i := range 3 {
				time.Sleep(time.Second)
				if err := weaver.Progress(ctx, float64(i), 0, "lines"); err != nil {
					return err
				}
			}
			if attempt == 1 {
				return again
			}
			return nil
		}, "0/0 lines 1/0 lines 2/0 lines 0/0 lines 1/0 lines 2/0 lines"},
		"of another total is another phase": {func(ctx context.Context, attempt int) error {
			if err := errors.Join(step(ctx, "a"), weaver.Progress(ctx, 50, 100)); err != nil || attempt == 1 {
				return errors.Join(err, again)
			}
			return errors.Join(step(ctx, "b"), weaver.Progress(ctx, 1, 2))
		}, "50/100 50/100 1/2"},
	} {
		subtest(t, name, func(fx *fixture) {
			got, last := "", weaver.TaskInfo{}.Progress
			sink := event.SinkFunc(func(ev event.Event) {
				p, ok := ev.(event.Progress)
				if ok {
					last = &p.Progress
					got += strings.TrimRight(fmt.Sprintf(" %v/%v %s", p.Current, p.Total, p.Message), " ")
				}
				if stored := fx.get(ev.Head().TaskID).Progress; last != nil && (stored == nil || *stored != *last) {
					fx.Errorf("at %s the store has %+v after the report %+v", ev.Type(), stored, last)
				}
			})
			fx.runConfig(fx.store, weaver.Config{Sink: sink, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				return "", c.run(ctx, weaver.Current(ctx).AttemptNo)
			})}})
			result(fx, enqueue(fx, typ, ""))
			synctest.Wait()
			equal(fx, "reports", got, " "+c.want)
		})
	}
}
