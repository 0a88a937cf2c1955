package weaver_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

// The Decider is called after a failure, a block and a failed decode, and never otherwise: a success
// is final, and a wait, a cancel, a decomposition and a dependency need no decision.
func TestDeciderIsAskedOnlyAfterFailures(t *testing.T) {
	typ := weaver.Define[string, string]("engine.asked.run.v1", weaver.NoRetry())
	other := weaver.Define[int, string](typ.Name()) // its inputs do not decode as typ's
	inBubble(t, func(fx *fixture) {
		var mu sync.Mutex
		asked := make(map[weaver.TaskID][]task.Outcome)
		watch := decide.Func(func(in decide.Input) decide.Decision {
			mu.Lock()
			defer mu.Unlock()
			asked[in.Task.ID] = append(asked[in.Task.ID], in.Outcome)
			return decide.Decision{}
		})
		child := enqueue(fx, piece, 1)
		running := make(chan struct{})
		fx.runConfig(fx.store, weaver.Config{Decider: watch, Handlers: []weaver.Handler{pieceHandler(), typ.Handler(func(ctx context.Context, how string) (string, error) {
			again := weaver.Current(ctx).AttemptNo > 1
			switch {
			case how == "failure":
				return "", errors.New("no")
			case how == "blocked":
				return "", weaver.Blocked("who pays?")
			case how == "sleep":
				return "", weaver.Sleep(ctx, "nap", time.Minute)
			case how == "cancel":
				close(running)
				<-ctx.Done()
				return "", context.Cause(ctx)
			case how == "decompose" && !again:
				return "", weaver.Decompose(weaver.JoinRerun, piece.With(1))
			case how == "add dependency" && !again:
				return "", weaver.AddDependency(child.ID())
			}
			return "done", nil
		})}})
		ids := make(map[string]weaver.TaskID)
		for _, how := range []string{"success", "failure", "blocked", "sleep", "cancel", "decompose", "add dependency"} {
			ids[how] = enqueue(fx, typ, how).ID()
		}
		ids["undecodable"] = enqueue(fx, other, 7).ID()
		<-running
		fx.must(fx.client.Cancel(fx.Context(), ids["cancel"]))
		time.Sleep(time.Hour)

		mu.Lock()
		defer mu.Unlock()
		want := map[string]task.Outcome{"failure": task.OutcomeFailure, "blocked": task.OutcomeBlocked, "undecodable": task.OutcomeDecodeFailed}
		for how, id := range ids {
			var outcomes []task.Outcome
			if o, ok := want[how]; ok {
				outcomes = []task.Outcome{o}
			}
			if !slices.Equal(asked[id], outcomes) {
				fx.Errorf("%s: the Decider was asked about %v, want %v", how, asked[id], outcomes)
			}
			equal(fx, how+": decisions on record", len(fx.history(id).Decisions), len(outcomes))
		}
		fx.wantState(ids["success"], weaver.StateSucceeded)
		fx.wantState(ids["decompose"], weaver.StateSucceeded)
		fx.wantState(ids["add dependency"], weaver.StateSucceeded)
	})
}
