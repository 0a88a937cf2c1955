package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

// The input of a type over its schema versions.
type (
	nameV1 struct{ Name string }
	nameV2 struct{ First, Last string }
	nameV3 struct {
		First, Last string
		Title       string
	}
)

// Validate implements weaver's interface.
func (n nameV3) Validate() error {
	if n.Title == "" {
		return errors.New("no title")
	}
	return nil
}

func splitName(v1 nameV1) (nameV2, error) {
	first, last, found := strings.Cut(v1.Name, " ")
	if !found {
		return nameV2{}, errors.New("no last name in " + v1.Name)
	}
	return nameV2{first, last}, nil
}

func giveTitle(v2 nameV2) (nameV3, error) { return nameV3{v2.First, v2.Last, "Dr."}, nil }

func TestSchemaVersions(t *testing.T) {
	const name = "engine.schema.name.v1"
	v1 := weaver.Define[nameV1, string](name)
	v2 := weaver.Define[nameV2, string](name, weaver.SchemaVersion(2))
	v3 := weaver.Define[nameV3, string](name, weaver.SchemaVersion(3))
	greet := func(_ context.Context, n nameV3) (string, error) { return n.Title + " " + n.First + " " + n.Last, nil }

	subtest(t, "older inputs go through every Upcast, the current one through none", func(fx *fixture) {
		fx.run(v3.Handler(greet, weaver.Upcast(1, splitName), weaver.Upcast(2, giveTitle)))
		equal(fx, "from version 1", result(fx, enqueue(fx, v1, nameV1{"Ada Lovelace"})), "Dr. Ada Lovelace")
		equal(fx, "from version 2", result(fx, enqueue(fx, v2, nameV2{"Ada", "Byron"})), "Dr. Ada Byron")
		equal(fx, "from version 3", result(fx, enqueue(fx, v3, nameV3{"Ada", "King", "Countess"})), "Countess Ada King")
	})

	subtest(t, "an older input without an Upcast is decoded as it is", func(fx *fixture) {
		fx.run(v2.Handler(func(_ context.Context, n nameV2) (string, error) { return n.First + "/" + n.Last, nil }))
		equal(fx, "the output", result(fx, enqueue(fx, v1, nameV1{"Ada"})), "/")
	})

	subtest(t, "the step from a version without an Upcast changes nothing", func(fx *fixture) {
		fx.run(v3.Handler(greet, weaver.Upcast(2, giveTitle)))
		equal(fx, "the output", result(fx, enqueue(fx, v1, nameV1{"Ada"})), "Dr.  ")
	})

	subtest(t, "an Upcast may work on the JSON", func(fx *fixture) {
		fx.run(v2.Handler(func(_ context.Context, n nameV2) (string, error) { return n.First, nil },
			weaver.Upcast(1, func(raw json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(strings.Replace(string(raw), "Name", "First", 1)), nil
			})))
		equal(fx, "the output", result(fx, enqueue(fx, v1, nameV1{"Ada"})), "Ada")
	})

	subtest(t, "an input that an Upcast refuses blocks the task, with its name", func(fx *fixture) {
		fx.run(v3.Handler(greet, weaver.Upcast(1, splitName), weaver.Upcast(2, giveTitle)))
		h := enqueue(fx, v1, nameV1{"Ada"})
		wantError(fx, blocked(fx, h), nil, "schema version 1 to 2", "no last name in Ada")
		equal(fx, "kind", fx.get(h.ID()).Error.Kind, task.KindDecode)
		fx.wantOutcomes(h.ID(), task.OutcomeDecodeFailed)
	})

	subtest(t, "what was decoded is validated, before the handler sees it", func(fx *fixture) {
		called := false
		fx.run(v3.Handler(func(ctx context.Context, n nameV3) (string, error) {
			called = true
			return greet(ctx, n)
		}))
		h := enqueue(fx, v2, nameV2{"Ada", "Byron"})
		wantError(fx, blocked(fx, h), nil, "the input is not valid", "no title")
		equal(fx, "the handler was called", called, false)
		fx.wantOutcomes(h.ID(), task.OutcomeDecodeFailed)
	})

	subtest(t, "a worker leaves inputs that are newer than its handler", func(fx *fixture) {
		old := fx.run(v1.Handler(func(_ context.Context, n nameV1) (string, error) { return n.Name, nil }))
		h := enqueue(fx, v2, nameV2{"Ada", "Byron"})
		equal(fx, "an older input beside it", result(fx, enqueue(fx, v1, nameV1{"Ada"})), "Ada")
		time.Sleep(time.Hour)
		synctest.Wait()
		fx.wantState(h.ID(), weaver.StateReady)
		equal(fx, "attempts", fx.get(h.ID()).AttemptNo, 0)
		fx.must(old.stop())
		fx.run(v2.Handler(func(_ context.Context, n nameV2) (string, error) { return n.Last, nil }))
		equal(fx, "the output", result(fx, h), "Byron")
	})

	subtest(t, "handlers see the version that was enqueued", func(fx *fixture) {
		var seen []int
		fx.run(v3.Handler(func(ctx context.Context, n nameV3) (string, error) {
			seen = append(seen, weaver.Current(ctx).SchemaVersion)
			return "", nil
		}, weaver.Upcast(1, splitName), weaver.Upcast(2, giveTitle)))
		result(fx, enqueue(fx, v1, nameV1{"Ada Byron"}))
		result(fx, enqueue(fx, v3, nameV3{"Ada", "Byron", "Dr."}))
		if len(seen) != 2 || seen[0] != 1 || seen[1] != 3 {
			fx.Errorf("Current said %v, want versions 1 and 3", seen)
		}
	})

	subtest(t, "an Upcast is of the handler's own type", func(fx *fixture) {
		other := weaver.Define[nameV1, string]("engine.schema.other.v1")
		fx.runConfig(fx.store, weaver.Config{
			Handlers: []weaver.Handler{
				other.Handler(func(_ context.Context, n nameV1) (string, error) { return n.Name, nil }),
				v3.Handler(greet, weaver.Upcast(1, splitName), weaver.Upcast(2, giveTitle)),
			},
			Router: routeAll(name),
		})
		wantError(fx, blocked(fx, enqueue(fx, other, nameV1{"Ada Byron"})), nil, "no title")
	})
}

// routeAll sends every task to one handler.
type routeAll string

// Route implements decide.Router.
func (r routeAll) Route(task.Task) decide.Route { return decide.Route{Type: string(r)} }

var _ decide.Router = routeAll("")

func TestUpcastsAreChecked(t *testing.T) {
	v2 := weaver.Define[nameV2, string]("engine.schema.checked.v1", weaver.SchemaVersion(2))
	run := func(context.Context, nameV2) (string, error) { return "", nil }
	for want, opts := range map[string][]weaver.HandlerOption{
		"Upcast(0":             {weaver.Upcast(0, splitName)},
		"Upcast(2":             {weaver.Upcast(2, giveTitle)},
		"two Upcasts from 1":   {weaver.Upcast(1, splitName), weaver.Upcast(1, splitName)},
		"the function is nil":  {weaver.Upcast[nameV1, nameV2](1, nil)},
		"its SchemaVersion, 2": {weaver.Upcast(7, splitName)},
	} {
		_, err := weaver.New(openStore(t), weaver.Config{Handlers: []weaver.Handler{v2.Handler(run, opts...)}})
		wantError(t, err, weaver.ErrConfig, v2.Name(), want)
	}
}
