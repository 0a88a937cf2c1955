package clitest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Task types of the sessions.
var (
	okType    = weaver.Define[int, string]("acme.demo.ok.v1", weaver.Queue("work"))
	failType  = weaver.Define[int, string]("acme.demo.fail.v1", weaver.Queue("work"), weaver.NoRetry())
	sagaType  = weaver.Define[int, string]("acme.demo.saga.v1", weaver.Queue("work"), weaver.NoRetry(), weaver.CleanupWhenCancelled())
	buyType   = weaver.Define[int, string]("acme.demo.buy.v1", weaver.Queue("work"), weaver.NoRetry())
	retryType = weaver.Define[int, string]("acme.demo.retry.v1", weaver.Queue("work"), weaver.MaxAttempts(3), weaver.Backoff(time.Hour))
	askType   = weaver.Define[int, string]("acme.demo.ask.v1", weaver.Queue("work"))
	twoAsks   = weaver.Define[int, string]("acme.demo.approve.v1", weaver.Queue("work"))
	sleepType = weaver.Define[int, string]("acme.demo.sleep.v1", weaver.Queue("work"))
	shipType  = weaver.Define[int, string]("acme.demo.ship.v1", weaver.Queue("work"))
	approved  = weaver.DefineSignal[bool]("approved")
	sumType   = weaver.Define[weaver.None, string]("acme.demo.sum.v1", weaver.Queue("work"))
)

func ok(ctx context.Context, n int) (string, error) {
	doubled, err := weaver.Step(ctx, "double", func(context.Context) (int, error) { return 2 * n, nil })
	return fmt.Sprintf("got %d", doubled), err
}

func fail(ctx context.Context, _ int) (string, error) {
	if _, err := weaver.Step(ctx, "prepare", func(context.Context) (int, error) { return 1, nil }); err != nil {
		return "", err
	}
	err := weaver.Do(ctx, "charge", func(context.Context) error { return errors.New("card refused\nby the bank \x1b[31m") })
	return "", err
}

// buy cannot ship the charged goods, and refunds the charge.
func buy(ctx context.Context, _ int) (string, error) {
	nothing := func(context.Context) error { return nil }
	err := weaver.Do(ctx, "charge", nothing)
	if err == nil {
		err = weaver.Do(ctx, "ship", func(context.Context) error { return errors.New("courier down") })
	}
	return "", errors.Join(err, weaver.Cleanup(ctx, "refund", nothing))
}

func retry(context.Context, int) (string, error) { return "", errors.New("the bank is closed") }

func ask(ctx context.Context, _ int) (string, error) {
	answer, given, err := weaver.UnblockInput[string](ctx)
	if err != nil || given {
		return answer, err
	}
	return "", weaver.Blocked("needs an approved budget")
}

func approve(ctx context.Context, _ int) (string, error) {
	if _, err := weaver.Ask[bool](ctx, "the budget", "needs an approved budget"); err != nil {
		return "", err
	}
	return weaver.Ask[string](ctx, "signature", "needs a signature")
}

// refundsOf counts the attempts of refunds, by task.
var refundsOf sync.Map

// saga is buy with a partner that does not know the account in the first two attempts. A negative n sleeps for a day.
func saga(ctx context.Context, n int) (string, error) {
	err := weaver.Do(ctx, "charge", func(context.Context) error { return nil })
	switch {
	case err == nil && n < 0:
		err = weaver.Sleep(ctx, "courier", 24*time.Hour)
	case err == nil:
		err = errors.New("courier down")
	}
	if !weaver.Final(ctx, err) {
		return "", err
	}
	return "", errors.Join(err, weaver.Cleanup(ctx, "refund", func(ctx context.Context) error {
		tries, _ := refundsOf.LoadOrStore(weaver.Current(ctx).TaskID, new(int))
		if *tries.(*int)++; *tries.(*int) <= 2 {
			return weaver.Permanent(errors.New("no such account"))
		}
		return nil
	}))
}

func sleep(ctx context.Context, _ int) (string, error) {
	return "rested", weaver.Sleep(ctx, "cool-down", 24*time.Hour)
}

// ship waits for an approval and then for children, of which the first sleeps.
func ship(ctx context.Context, n int) (string, error) {
	yes, ok, err := approved.Wait(ctx, "manager", 48*time.Hour)
	if err != nil || !ok {
		return "nobody answered", err
	}
	if _, err := weaver.Call(ctx, "check", okType, n); err != nil {
		return "", err
	}
	rest, err := weaver.CallAll(ctx, "fan", sleepType, []int{1, 2})
	return fmt.Sprint(yes, rest), err
}

func sum(context.Context, weaver.None) (string, error) { return "summed", nil }

// seeds are the initial contents of a session's store. Each returns the IDs that become variables of the session.
var seeds = map[string]func(*fixture) map[string]task.ID{
	"thousand": func(w *fixture) map[string]task.ID { // and more than a page
		hs, err := okType.EnqueueMany(w.ctx, w.client, make([]int, 1050), weaver.Label("lot", "big"))
		w.check(err)
		return w.one("NEWEST", hs[len(hs)-1].ID(), nil)
	},
	"ready": func(w *fixture) map[string]task.ID {
		h, err := okType.Enqueue(w.ctx, w.client, 21, weaver.Label("team", "pay"), weaver.Metadata("tenant", "t1"), weaver.Priority(2))
		return w.one("READY", h.ID(), err)
	},
	"succeeded": func(w *fixture) map[string]task.ID {
		h, err := okType.Enqueue(w.ctx, w.client, 21, weaver.Label("team", "pay"), weaver.IdempotencyKey("evt-1"))
		w.check(err)
		w.work()
		return w.one("SUCCEEDED", h.ID(), nil)
	},
	"failed": func(w *fixture) map[string]task.ID {
		h, err := failType.Enqueue(w.ctx, w.client, 1, weaver.Label("team", "ops"))
		w.check(err)
		w.work()
		return w.one("FAILED", h.ID(), nil)
	},
	"givenup": func(w *fixture) map[string]task.ID {
		h, err := sagaType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		return w.one("GIVENUP", h.ID(), nil)
	},
	"saga": func(w *fixture) map[string]task.ID { // and it sleeps
		h, err := sagaType.Enqueue(w.ctx, w.client, -1)
		w.check(err)
		w.work()
		return w.one("SAGA", h.ID(), nil)
	},
	"order":      ordered("ORDER", -1), // and it sleeps
	"shipped":    ordered("SHIPPED", 0),
	"returned":   ordered("RETURNED", 1),
	"unreturned": ordered("UNRETURNED", 2),
	"refunded": func(w *fixture) map[string]task.ID {
		h, err := buyType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		return w.one("REFUNDED", h.ID(), nil)
	},
	"refundedjob": func(w *fixture) map[string]task.ID {
		j := weaver.NewJob("orders")
		j.Add("buy", buyType.With(1))
		ids := w.submit(j)
		w.work()
		return ids
	},
	"retry": func(w *fixture) map[string]task.ID {
		h, err := retryType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		return w.one("RETRY", h.ID(), nil)
	},
	"blocked": func(w *fixture) map[string]task.ID {
		h, err := askType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		return w.one("BLOCKED", h.ID(), nil)
	},
	"asking": func(w *fixture) map[string]task.ID {
		h, err := twoAsks.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		return w.one("ASKING", h.ID(), nil)
	},
	"shipping": func(w *fixture) map[string]task.ID {
		h, err := shipType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		return w.one("SHIPPING", h.ID(), nil)
	},
	"work": func(w *fixture) map[string]task.ID {
		w.work()
		return nil
	},
	"sleeping": func(w *fixture) map[string]task.ID {
		h, err := sleepType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		return w.one("SLEEPING", h.ID(), nil)
	},
	"delayed": func(w *fixture) map[string]task.ID {
		h, err := okType.Enqueue(w.ctx, w.client, 1, weaver.Delay(time.Hour), weaver.ExpireAfter(2*time.Hour))
		return w.one("DELAYED", h.ID(), err)
	},
	"expired": func(w *fixture) map[string]task.ID {
		h, err := okType.Enqueue(w.ctx, w.client, 1, weaver.ExpireAfter(time.Microsecond))
		w.check(err)
		w.reap()
		return w.one("EXPIRED", h.ID(), nil)
	},
	"running": func(w *fixture) map[string]task.ID {
		h, err := okType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.claim(time.Hour)
		w.unprove()
		return w.one("RUNNING", h.ID(), nil)
	},
	"gone": func(w *fixture) map[string]task.ID {
		h, err := okType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.claim(time.Hour)
		return w.one("GONE", h.ID(), nil)
	},
	"crashed": func(w *fixture) map[string]task.ID { return w.one("CRASHED", w.crash(1), nil) },
	"poison":  func(w *fixture) map[string]task.ID { return w.one("POISON", w.crash(3), nil) },
	"key": func(w *fixture) map[string]task.ID {
		holder, err := okType.Enqueue(w.ctx, w.client, 1, weaver.ConcurrencyKey("org_1"))
		w.check(err)
		waiter, err := okType.Enqueue(w.ctx, w.client, 2, weaver.ConcurrencyKey("org_1"))
		w.check(err)
		w.claim(time.Hour)
		w.unprove()
		return map[string]task.ID{"HOLDER": holder.ID(), "WAITER": waiter.ID()}
	},
	"unreached": func(w *fixture) map[string]task.ID {
		h, err := failType.Enqueue(w.ctx, w.client, 1)
		w.check(err)
		w.work()
		w.check(w.client.Retry(w.ctx, h.ID(), weaver.By("ops")))
		w.run(failType.Handler(func(context.Context, int) (string, error) { return "done otherwise", nil }, weaver.CodeVersion(2)))
		return w.one("UNREACHED", h.ID(), nil)
	},
	"job": func(w *fixture) map[string]task.ID {
		j := weaver.NewJob("nightly", weaver.Budget{MaxAttemptsPerTask: 3, MaxDuration: time.Hour})
		extract := j.Add("extract", askType.With(1))
		load := j.Add("load", okType.With(1))
		clean := j.Add("clean", sumType.With(weaver.None{}), weaver.Needs(extract))
		j.Add("sum", sumType.With(weaver.None{}), weaver.Needs(clean, load))
		return w.submit(j)
	},
	"failedjob": func(w *fixture) map[string]task.ID {
		j := weaver.NewJob("nightly")
		extract := j.Add("extract", failType.With(1))
		j.Add("sum", sumType.With(weaver.None{}), weaver.Needs(extract))
		return w.submit(j)
	},
	"twins": func(w *fixture) map[string]task.ID {
		j := weaver.NewJob("twins")
		for _, name := range []string{"t1", "t2", "t3", "t4", "t5", "t6", "a/b"} {
			j.Add(name, okType.With(1, weaver.Delay(time.Hour)))
		}
		return w.submit(j)
	},
	"many": func(w *fixture) map[string]task.ID {
		_, err := okType.EnqueueMany(w.ctx, w.client, []int{1, 2, 3, 4, 5})
		w.check(err)
		return nil
	},
	"loud": func(w *fixture) map[string]task.ID {
		h, err := weaver.Define[string, string]("acme.demo.greet.v1").Enqueue(w.ctx, w.client, "Ada", weaver.Label("voice", "loud"))
		return w.one("LOUD", h.ID(), err)
	},
	"unread": func(w *fixture) map[string]task.ID {
		return w.one("UNREAD", w.unread(weaver.Permanent(errors.New("no idea"))), nil)
	},
	"repairing": func(w *fixture) map[string]task.ID {
		return w.one("REPAIRING", w.unread(errors.New("the model is away")), nil)
	},
	"badrequest": func(w *fixture) map[string]task.ID {
		got, err := w.client.EnqueueTasks(w.ctx, weaver.NewDraft(builtin.Request.Name(), json.RawMessage(`{"url": 7}`)))
		w.check(err)
		w.run(builtin.Request.Handler(func(context.Context, builtin.RequestInput) (out builtin.RequestOutput, err error) { return out, nil }))
		return w.one("BADREQUEST", got[0].ID, nil)
	},
	"empty": func(*fixture) map[string]task.ID { return nil },
}

// seed fills the store weaver.db in the session's namespace:
//
//	seed blocked     # makes a task, and $BLOCKED is its id
func seed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: seed NAME…")
	}
	for _, name := range args {
		plant, known := seeds[name]
		if !known {
			ts.Fatalf("there is no seed %q", name)
		}
		w := openFixture(ts)
		ids := plant(w)
		w.close()
		for variable, id := range ids {
			ts.Setenv(variable, id.String())
		}
	}
}

// runSQL changes the store's file with SQL:
//
//	sql 'UPDATE weaver_tasks SET step_count = 7'
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql STATEMENT")
	}
	w := openFixture(ts)
	defer w.close()
	_, err := w.db.DB().ExecContext(w.ctx, args[0])
	w.check(err)
}

// fixture is an open store with a client.
type fixture struct {
	ts     *testscript.TestScript
	ctx    context.Context
	db     *sqlite.DB
	client *weaver.Client
}

func openFixture(ts *testscript.TestScript) *fixture {
	w := &fixture{ts: ts, ctx: context.Background()}
	var err error
	w.db, err = sqlite.Open(w.ctx, ts.MkAbs("weaver.db"))
	w.check(err)
	w.check(w.db.Migrate(w.ctx))
	w.client, err = weaver.NewClient(w.db, weaver.ClientConfig{Namespace: ts.Getenv("WEAVER_NAMESPACE")})
	w.check(err)
	return w
}

func (w *fixture) close() { w.check(w.db.Close()) }

func (w *fixture) check(err error) {
	if err != nil {
		w.ts.Fatalf("seed: %v", err)
	}
}

func (w *fixture) one(variable string, id task.ID, err error) map[string]task.ID {
	w.check(err)
	return map[string]task.ID{variable: id}
}

// work runs all due tasks.
func (w *fixture) work() {
	w.run(okType.Handler(ok), failType.Handler(fail), buyType.Handler(buy), sagaType.Handler(saga), orderType.Handler(order), retryType.Handler(retry), askType.Handler(ask), twoAsks.Handler(approve), sleepType.Handler(sleep), shipType.Handler(ship), sumType.Handler(sum))
}

// unread enqueues a task whose input does not decode and whose repair fails.
func (w *fixture) unread(failed error) task.ID {
	h, err := weaver.Define[string, string](okType.Name(), weaver.Queue("work")).Enqueue(w.ctx, w.client, "seven")
	w.check(err)
	w.run(okType.Handler(ok, weaver.Repair(func(context.Context, weaver.RepairRequest) (json.RawMessage, error) { return nil, failed })))
	return h.ID()
}

func (w *fixture) run(handlers ...weaver.Handler) {
	eng, err := weaver.New(w.db, weaver.Config{Namespace: w.client.Namespace(), Handlers: handlers, Logger: slog.New(slog.DiscardHandler)})
	w.check(err)
	w.check(eng.RunUntilIdle(w.ctx))
}

func (w *fixture) submit(j *weaver.Job) map[string]task.ID {
	h, err := w.client.Submit(w.ctx, j)
	w.check(err)
	w.work()
	tasks, err := w.client.JobTasks(w.ctx, h.ID())
	w.check(err)
	ids := map[string]task.ID{"JOB": h.ID()}
	w.ts.Setenv("PREFIX", h.ID().String()[:6]) // shared by IDs from the same quarter of an hour
	for _, t := range tasks {
		ids[strings.ToUpper(t.Node)] = t.ID
	}
	return ids
}

// claim leases due tasks for a worker that sends no heartbeat.
func (w *fixture) claim(ttl time.Duration) {
	ns := w.client.Namespace()
	w.check(w.db.Join(w.ctx, ns, store.WorkerInfo{ID: "silent", Name: "web1:7", TTL: ttl}))
	_, err := w.db.Claim(w.ctx, ns, store.ClaimRequest{
		Worker: "silent", Name: "web1:7", LeaseID: task.NewLeaseID(), TTL: ttl, Limit: 10, Slots: 1, Types: map[string]int{okType.Name(): 1},
	})
	w.check(err)
}

// unprove removes the lock files of workers, so that the death of this session's workers cannot be proven.
func (w *fixture) unprove() {
	w.check(os.RemoveAll(w.ts.MkAbs("weaver.db.workers")))
}

// reap registers a worker and reaps.
func (w *fixture) reap() {
	ns := w.client.Namespace()
	w.check(w.db.Join(w.ctx, ns, store.WorkerInfo{ID: "reaper", Name: "web2:8", TTL: time.Hour}))
	_, err := w.db.Reap(w.ctx, ns, store.ReapRequest{Worker: "reaper", TTL: time.Hour, CrashBudget: 3})
	w.check(err)
	w.check(w.db.Leave(w.ctx, ns, "reaper"))
}

// crash loses the lease of a task n times, as if its process had ended.
func (w *fixture) crash(n int) task.ID {
	h, err := okType.Enqueue(w.ctx, w.client, 1)
	w.check(err)
	for range n {
		w.claim(time.Hour)
		w.close() // the end of the process: its lock is free
		*w = *openFixture(w.ts)
		w.reap()
	}
	return h.ID()
}
