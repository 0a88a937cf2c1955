package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// charge is an input that a producer encodes wrongly.
type repairCharge struct {
	Cents int      `json:"cents"`
	Tags  []string `json:"tags,omitempty"`
}

// Validate implements weaver's interface.
func (c repairCharge) Validate() error {
	if c.Cents < 0 {
		return errors.New("cents are negative")
	}
	return nil
}

const repairName = "engine.repair.charge.v1"

var (
	repairType = weaver.Define[repairCharge, int](repairName)
	// wrongCharge enqueues an input that repairType cannot decode.
	wrongCharge = weaver.Define[map[string]any, int](repairName)
)

func cents(_ context.Context, c repairCharge) (int, error) { return c.Cents, nil }

// toInt repairs an input whose number is a string.
func toInt(_ context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
	return json.RawMessage(strings.ReplaceAll(strings.ReplaceAll(string(r.Raw), `"7"`, "7"), `"x"`, "8")), nil
}

func (fx *fixture) repairsOf(id weaver.TaskID) (children []weaver.TaskInfo) {
	fx.Helper()
	for _, d := range fx.history(id).Decisions {
		if d.Kind == task.DecideRepair {
			children = append(children, fx.get(d.ChildIDs[0]))
		}
	}
	return children
}

func TestRepair(t *testing.T) {
	wrong := map[string]any{"cents": "7"}

	subtest(t, "an input that does not decode is repaired, and the task runs with the new one", func(fx *fixture) {
		var asked weaver.RepairRequest
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{repairType.Handler(cents, weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
			asked = r
			return toInt(ctx, r)
		}))}})
		var waits []event.TaskSuspended
		weaver.On(e.Engine, func(ev event.TaskSuspended) { waits = append(waits, ev) })
		h := enqueue(fx, wrongCharge, wrong, weaver.Label("subject", "42"))
		equal(fx, "the output", result(fx, h), 7)
		fx.must(e.stop())
		equal(fx, "the raw input", string(asked.Raw), `{"cents":"7"}`)
		equal(fx, "which repair", [2]int{asked.No, asked.Most}, [2]int{1, 2})
		wantError(fx, errors.New(asked.Error), nil, "does not decode")
		wantError(fx, errors.New(asked.Hint), nil, "error: the input does not decode", "path: cents", `expected: {"additionalProperties":false`)
		equal(fx, "the schema", string(asked.Schema), `{"additionalProperties":false,"properties":{"cents":{"type":"integer"},"tags":{"items":{"type":"string"},"type":"array"}},"required":["cents"],"type":"object"}`)

		hist := fx.history(h.ID())
		equal(fx, "the input", string(hist.Task.Input), `{"cents":7}`)
		equal(fx, "counts", [2]int{hist.Task.AttemptCount, hist.Task.RepairCount}, [2]int{1, 1})
		equal(fx, "the first outcome", hist.Attempts[0].Outcome, task.OutcomeDecodeFailed)
		repair := fx.repairsOf(h.ID())[0]
		equal(fx, "the repair", [3]string{repair.Type, repair.Queue, repair.Node}, [3]string{task.RepairType, "repair:" + repairName, "repair[1]"})
		equal(fx, "its state", repair.State, weaver.StateSucceeded)
		audit := hist.Audit[0]
		equal(fx, "the audit", [2]string{audit.Verb, audit.Actor}, [2]string{"repair", "repair " + repair.ID.String()})
		wantError(fx, errors.New(audit.Reason), nil, task.PayloadHash(json.RawMessage(`{"cents":"7"}`)), task.PayloadHash(json.RawMessage(`{"cents":7}`)), "repair 1 of 2; input ")
		equal(fx, "the label of the repair", repair.Labels["subject"], "42")
		equal(fx, "waits", len(waits) > 0 && waits[0].Waiting == task.WaitRepair && waits[0].Error != nil, true)
	})

	subtest(t, "what Validate refuses is repaired too, and a repair that does not fit fails", func(fx *fixture) {
		var hints []string
		answers := []string{`{"cents":-2}`, `{"cents":3}`}
		fx.run(repairType.Handler(cents, weaver.Repair(func(_ context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
			hints = append(hints, r.Hint)
			return json.RawMessage(answers[len(hints)-1]), nil
		})))
		h := enqueue(fx, wrongCharge, map[string]any{"cents": -1})
		equal(fx, "the output", result(fx, h), 3)
		first := fx.repairsOf(h.ID())[0]
		equal(fx, "the first repair", first.State, weaver.StateFailed)
		equal(fx, "its error", first.Error.Kind, task.KindValidation)
		wantError(fx, errors.New(first.Error.Message), nil, "the repaired input of task "+h.ID().String()+" does not fit "+repairName, "cents are negative")
		equal(fx, "its attempts", first.AttemptNo, 1)
		wantError(fx, errors.New(hints[1]), nil, "the repair before this one failed: ", "cents are negative")
	})

	for name, answer := range map[string]string{
		"there is no field":              `{"cents":1,"euros":2}`,
		"invalid character":              `{"cents":`,
		"it is the input that was to be": `{"cents":"7"}`,
		"cents: want a whole number":     `{"cents":"8"}`,
		"unexpected end of JSON input":   ``,
		"a key that stands twice":        `{"cents":1,"cents":2}`,
	} {
		subtest(t, "the wrong shape is a failed repair: "+name, func(fx *fixture) {
			fx.run(repairType.Handler(cents, weaver.Repair(func(context.Context, weaver.RepairRequest) (json.RawMessage, error) {
				return json.RawMessage(answer), nil
			})))
			h := enqueue(fx, wrongCharge, wrong)
			blocks(fx, h)
			hist := fx.history(h.ID())
			equal(fx, "the input", string(hist.Task.Input), `{"cents":"7"}`)
			equal(fx, "repair_count", hist.Task.RepairCount, 2)
			last := hist.Decisions[len(hist.Decisions)-1].Reason.Text
			wantError(fx, errors.New(last), nil, "2 of 2 repairs (max_repairs) did not help", "weaver task repair "+h.ID().String(), "weaver task unblock "+h.ID().String())
			repairs := fx.repairsOf(h.ID())
			equal(fx, "repairs", len(repairs), 2)
			wantError(fx, errors.New(repairs[1].Error.Message), nil, "does not fit "+repairName)
		})
	}

	subtest(t, "an error of the function is tried again", func(fx *fixture) {
		tries := 0
		fx.run(repairType.Handler(cents, weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
			if tries++; tries < 3 {
				return nil, errors.New("the model is away")
			}
			return toInt(ctx, r)
		})))
		h := enqueue(fx, wrongCharge, wrong)
		equal(fx, "the output", result(fx, h), 7)
		equal(fx, "repair_count", fx.get(h.ID()).RepairCount, 1)
		equal(fx, "attempts of the repair", fx.repairsOf(h.ID())[0].AttemptNo, 3)
	})

	subtest(t, "a function that panics, and one that gives up, end the repair", func(fx *fixture) {
		calls := 0
		fx.run(repairType.Handler(cents, weaver.Repair(func(context.Context, weaver.RepairRequest) (json.RawMessage, error) {
			if calls++; calls == 1 {
				return nil, weaver.Permanent(errors.New("no idea"))
			}
			panic("boom")
		})))
		h := enqueue(fx, wrongCharge, wrong)
		blocks(fx, h)
		repairs := fx.repairsOf(h.ID())
		equal(fx, "the first", repairs[0].Error.Kind, task.KindHandler)
		equal(fx, "the second", repairs[1].Error.Kind, task.KindPanic)
	})

	subtest(t, "MaxRepairs(0), and no Repair, block at once", func(fx *fixture) {
		never := weaver.Define[map[string]any, int](repairName, weaver.MaxRepairs(0))
		fx.run(repairType.Handler(cents, weaver.Repair(toInt)))
		h := enqueue(fx, never, wrong)
		blocks(fx, h)
		equal(fx, "repairs", len(fx.repairsOf(h.ID())), 0)
	})

	subtest(t, "the budget of a job limits repairs, and a failed one does not count against the job", func(fx *fixture) {
		fx.run(repairType.Handler(cents, weaver.Repair(func(context.Context, weaver.RepairRequest) (json.RawMessage, error) { return json.RawMessage(`1`), nil })))
		j := weaver.NewJob("repairs", weaver.Budget{MaxRepairs: 1})
		j.Add("a", wrongCharge.With(wrong))
		jh, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		time.Sleep(time.Minute)
		synctest.Wait()
		st, err := fx.client.JobStatus(fx.Context(), jh.ID())
		fx.must(err)
		equal(fx, "the job", st.State, task.JobBlocked)
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{Types: []string{repairName}})
		fx.must(err)
		equal(fx, "repair_count", list[0].RepairCount, 1)
		equal(fx, "the node of the repair", fx.repairsOf(list[0].ID)[0].Node, "a/repair[1]")
		fx.must(fx.client.RepairInput(fx.Context(), list[0].ID, json.RawMessage(`{"cents":4}`)))
		_, err = jh.Wait(fx.Context())
		fx.must(err)
	})

	subtest(t, "a Decider may choose a repair after any failure, and the handler sees no repair among its children", func(fx *fixture) {
		d := decide.Func(func(in decide.Input) decide.Decision {
			if in.CanRepair && in.Error.Code == "bad-input" {
				return decide.Decision{Kind: task.DecideRepair}
			}
			return decide.Decision{}
		})
		children := -1
		fx.runConfig(fx.store, weaver.Config{Decider: d, Handlers: []weaver.Handler{repairType.Handler(func(ctx context.Context, c repairCharge) (int, error) {
			if c.Cents == 7 {
				return 0, weaver.WithCode("bad-input", errors.New("seven"))
			}
			kids, err := weaver.Children(ctx)
			children = len(kids)
			return c.Cents, err
		}, weaver.Repair(func(context.Context, weaver.RepairRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"cents":9}`), nil
		}))}})
		h := enqueue(fx, repairType, repairCharge{Cents: 7})
		equal(fx, "the output", result(fx, h), 9)
		equal(fx, "children", children, 0)
		d2 := fx.history(h.ID()).Decisions[0]
		in, ok := decide.Again(fx.get(h.ID()), fx.history(h.ID()).Attempts, &d2)
		equal(fx, "asked with CanRepair", ok && in.CanRepair, true)
	})

	subtest(t, "a Decider that panics is replaced by the default, which repairs", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{
			Decider:  decide.Func(func(decide.Input) decide.Decision { panic("boom") }),
			Handlers: []weaver.Handler{repairType.Handler(cents, weaver.Repair(toInt))},
		})
		equal(fx, "the output", result(fx, enqueue(fx, wrongCharge, wrong)), 7)
	})

	subtest(t, "a RepairHinter writes the hint, and one that panics is replaced by the default", func(fx *fixture) {
		var hints []string
		fx.runConfig(fx.store, weaver.Config{
			RepairHinter: decide.HintFunc(func(in decide.RepairInput) string {
				if in.Task.RepairCount > 0 {
					panic("boom")
				}
				return fmt.Sprintf("%s wants %s", in.Path, in.Error.Kind)
			}),
			Handlers: []weaver.Handler{repairType.Handler(cents, weaver.Repair(func(_ context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
				hints = append(hints, r.Hint)
				return nil, weaver.Permanent(errors.New("no"))
			}))},
		})
		blocks(fx, enqueue(fx, wrongCharge, wrong))
		equal(fx, "the first hint", hints[0], "cents wants decode_error")
		wantError(fx, errors.New(hints[1]), nil, "error: ", "path: cents")
	})

	subtest(t, "only workers with the Repair of the type make the repair, whatever queues they serve", func(fx *fixture) {
		other := weaver.Define[repairCharge, int]("engine.repair.other.v1")
		var made atomic.Int32
		first := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{
			repairType.Handler(cents, weaver.Repair(toInt)),
		}})
		fx.must(first.stop())
		bad := func(context.Context, weaver.RepairRequest) (json.RawMessage, error) {
			fx.Error("the repair of another type was asked")
			return nil, weaver.Permanent(errors.New("not mine"))
		}
		deciding := fx.start(fx.store, weaver.Config{Queues: map[string]int{"default": 1}, Handlers: []weaver.Handler{
			repairType.Handler(cents, weaver.Repair(func(context.Context, weaver.RepairRequest) (json.RawMessage, error) {
				return nil, errors.New("later")
			})),
		}})
		h := enqueue(fx, wrongCharge, wrong)
		time.Sleep(time.Second)
		fx.must(deciding.stop())
		equal(fx, "waits for", fx.get(h.ID()).Waiting, task.WaitRepair)
		idle := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{other.Handler(cents, weaver.Repair(bad)), repairType.Handler(cents)}})
		time.Sleep(time.Hour)
		equal(fx, "waits for", fx.get(h.ID()).Waiting, task.WaitRepair)
		fx.must(idle.stop())
		fx.runConfig(fx.store, weaver.Config{Queues: map[string]int{"default": 1}, Handlers: []weaver.Handler{
			repairType.Handler(cents, weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
				made.Add(1)
				return toInt(ctx, r)
			})),
		}})
		equal(fx, "the output", result(fx, h), 7)
		equal(fx, "repairs", made.Load(), int32(1))
	})

	subtest(t, "a large input goes to the bucket and comes from there", func(fx *fixture) {
		bucket := blob.NewMemory()
		tags := []string{strings.Repeat("x", weaver.DefaultInlineLimit)}
		cfg := weaver.Config{Bucket: bucket, Handlers: []weaver.Handler{repairType.Handler(func(_ context.Context, c repairCharge) (int, error) { return len(c.Tags[0]), nil }, weaver.Repair(toInt))}}
		e := fx.runConfig(fx.store, cfg)
		h, err := wrongCharge.Enqueue(fx.Context(), e, map[string]any{"cents": "7", "tags": tags})
		fx.must(err)
		out, err := h.Wait(fx.Context())
		fx.must(err)
		equal(fx, "the output", out, len(tags[0]))
	})

	subtest(t, "a task of the type of repairs that is no repair fails", func(fx *fixture) {
		fx.run(repairType.Handler(cents, weaver.Repair(toInt)))
		victim := enqueue(fx, repairType, repairCharge{Cents: 1}, weaver.Delay(time.Hour))
		input, err := json.Marshal(task.Repair{Type: repairName, InputHash: task.PayloadHash(fx.get(victim.ID()).Input), Schema: 1})
		fx.must(err)
		got, err := fx.client.EnqueueTasks(fx.Context(), weaver.NewDraft(task.RepairType, input, weaver.Queue(task.RepairQueue(repairName))))
		fx.must(err)
		time.Sleep(time.Minute)
		forged := fx.get(got[0].ID)
		equal(fx, "its state", forged.State, weaver.StateFailed)
		wantError(fx, errors.New(forged.Error.Message), nil, "repairs are tasks that the engine makes")
	})
}

func TestRepairMistakes(t *testing.T) {
	for words, handlers := range map[string][]weaver.Handler{
		"the function is nil":           {repairType.Handler(cents, weaver.Repair(nil))},
		"two Repairs":                   {repairType.Handler(cents, weaver.Repair(toInt), weaver.Repair(toInt))},
		"two handlers with a Repair":    {repairType.Handler(cents, weaver.Repair(toInt)), repairType.Handler(cents, weaver.HandlerName("b"), weaver.Repair(toInt))},
		"is the type of repairs, which": {weaver.Define[int, int](task.RepairType).Handler(func(context.Context, int) (int, error) { return 0, nil })},
	} {
		subtest(t, words, func(fx *fixture) {
			_, err := weaver.New(fx.store, weaver.Config{Handlers: handlers, Router: decide.Direct{}})
			wantError(fx, err, weaver.ErrConfig, words)
		})
	}
}

func TestRepairInput(t *testing.T) {
	wrong := map[string]any{"cents": "7"}

	subtest(t, "an operator gives a blocked task another input", func(fx *fixture) {
		e := fx.run(repairType.Handler(cents))
		h := enqueue(fx, wrongCharge, wrong)
		blocks(fx, h)
		wantError(fx, e.RepairInput(fx.Context(), h.ID(), map[string]any{"cents": "x"}), weaver.ErrInvalidInput, "cents: want a whole number, and it is a JSON string")
		wantError(fx, e.RepairInput(fx.Context(), h.ID(), repairCharge{Cents: -1}), weaver.ErrInvalidInput, "cents are negative")
		wantError(fx, e.RepairInput(fx.Context(), h.ID(), json.RawMessage(`{"cents":1,"euros":2}`)), weaver.ErrInvalidInput, "euros")
		wantError(fx, fx.client.RepairInput(fx.Context(), h.ID(), json.RawMessage(`{"cents":`)), weaver.ErrInvalidInput)
		wantError(fx, fx.client.RepairInput(fx.Context(), h.ID(), make(chan int)), weaver.ErrInvalidInput)
		wantError(fx, fx.client.RepairInput(fx.Context(), h.ID(), wrong), weaver.ErrState, "has this input already: unblock it")
		wantError(fx, fx.client.RepairInput(fx.Context(), h.ID(), strings.Repeat("x", weaver.DefaultInlineLimit+1)), weaver.ErrTooLarge)
		wantError(fx, fx.client.RepairInput(fx.Context(), h.ID(), 1, weaver.Force()), weaver.ErrInvalidOption)
		wantError(fx, fx.client.RepairInput(fx.Context(), h.ID(), 1, weaver.SeenEpoch(99)), store.ErrChanged)
		wantError(fx, fx.client.RepairInput(fx.Context(), weaver.TaskID{1}, 1), weaver.ErrNotFound)
		equal(fx, "the state", fx.get(h.ID()).State, weaver.StateBlocked)

		fx.must(e.RepairInput(fx.Context(), h.ID(), repairCharge{Cents: 12}, weaver.By("ada"), weaver.Reason("a typo")))
		equal(fx, "the output", result(fx, h), 12)
		audit := fx.history(h.ID()).Audit[0]
		equal(fx, "the actor", audit.Actor, "ada")
		wantError(fx, errors.New(audit.Reason), nil, "a typo; input ")
		wantError(fx, fx.client.RepairInput(fx.Context(), h.ID(), repairCharge{Cents: 13}), weaver.ErrState, "only blocked tasks")
	})

	subtest(t, "while a repair runs the operator's input wins, and the repair ends well", func(fx *fixture) {
		started, end := make(chan struct{}), make(chan struct{})
		fx.run(repairType.Handler(cents, weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
			close(started)
			select {
			case <-end:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return toInt(ctx, r)
		})))
		h := enqueue(fx, wrongCharge, wrong)
		<-started
		fx.must(fx.client.RepairInput(fx.Context(), h.ID(), repairCharge{Cents: 5}))
		equal(fx, "the output", result(fx, h), 5)
		repair := fx.repairsOf(h.ID())[0]
		equal(fx, "the repair", repair.State, weaver.StateSucceeded)
		wantError(fx, errors.New(string(repair.Output)), nil, `"superseded":true`)
	})

	subtest(t, "a repair that comes later does not overwrite an operator's input", func(fx *fixture) {
		started, end := make(chan struct{}), make(chan struct{})
		fx.run(repairType.Handler(cents, weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
			close(started)
			<-end
			return toInt(ctx, r)
		})))
		h := enqueue(fx, wrongCharge, wrong)
		<-started
		fx.must(fx.client.RepairInput(fx.Context(), h.ID(), repairCharge{Cents: 5}))
		close(end)
		equal(fx, "the output", result(fx, h), 5)
	})
}

// A process dies at each point of a repair: no repair runs twice, and the task has its new input in
// the end.
func TestRepairSurvivesCrashes(t *testing.T) {
	for name, match := range map[string]func(store.Command) bool{
		"before the input is replaced": func(store.Command) bool { return false },
		"after the input is replaced":  func(store.Command) bool { return true },
	} {
		subtest(t, name, func(fx *fixture) {
			s := &replyLost{Store: fx.store, after: match}
			var calls atomic.Int32
			e := fx.start(s, weaver.Config{Handlers: []weaver.Handler{repairType.Handler(cents, weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
				calls.Add(1)
				return toInt(ctx, r)
			}))}})
			h := enqueue(fx, wrongCharge, map[string]any{"cents": "7"})
			equal(fx, "the output", result(fx, h), 7)
			fx.must(e.stop())
			equal(fx, "calls of the function", calls.Load(), int32(1))
			equal(fx, "commands that failed", s.failed, 1)
			repair := fx.repairsOf(h.ID())[0]
			equal(fx, "attempts of the repair", repair.AttemptNo, 2)
			equal(fx, "superseded", strings.Contains(string(repair.Output), "superseded"), false)
			equal(fx, "verbs", len(fx.history(h.ID()).Audit), 1)
		})
	}
}

// replyLost fails the first ReplaceInput, before or after the store has executed it.
type replyLost struct {
	store.Store
	after  func(store.Command) bool
	failed int
}

func (s *replyLost) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	if _, replaces := cmds[0].(store.ReplaceInput); !replaces || s.failed > 0 {
		return s.Store.Operate(ctx, ns, cmds...)
	}
	s.failed++
	if s.after(cmds[0]) {
		if _, err := s.Store.Operate(ctx, ns, cmds...); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the reply was lost")
}
