package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// TestLimitModel sets, changes and deletes limits, asks them to rest, and claims and ends tasks with rates and turns, on
// memstore and on SQLite. The order of turns is each store's own: what one store starts, the other one must let start too,
// and then neither has more to start. A third account keeps the starts and the running tasks of each limit.
func TestLimitModel(t *testing.T) {
	checks := 60
	if testing.Short() {
		checks /= 4
	}
	unlessGiven(t, "rapid.checks", fmt.Sprint(checks))
	unlessGiven(t, "rapid.steps", "60")
	unlessGiven(t, "rapid.seed", "1")
	unlessGiven(t, "rapid.nofailfile", "true")
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, runLimits) })
}

// ownRates are the rates that tasks bring along, by key.
var ownRates = []task.Rate{
	{},
	{Key: "slow", Starts: 2, Per: time.Second, Burst: 1},
	{Key: "fast", Starts: 10, Per: time.Second, Burst: 3},
}

var limitNames = []string{
	store.LimitQueue + modelQueues[0], store.LimitQueue + modelQueues[1], store.LimitType + modelTypes[0],
	store.LimitLabel + "tenant=a", store.LimitLabel + "tenant=b", store.LimitRate + "slow", store.LimitRate + "fast",
}

// limited holds two stores with the same limits and tasks, and the starts that the limits allow.
type limited struct {
	*pair
	stores [2]store.Store
	mine   [2]map[task.ID]store.Claimed // running tasks as each store handed them out
	of     map[string]*account          // by the name of a limit
}

// account records the starts under a limit.
type account struct {
	set    store.Limit
	starts []time.Time // since its rate was set
	rest   time.Time
}

func runLimits(t *rapid.T) {
	ctx := context.Background()
	db, err := sqlite.OpenMemory(ctx)
	if err == nil {
		err = db.Migrate(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := &pair{T: t, mem: memstore.New(), first: db, workers: []store.WorkerID{"ann"}, generations: map[string]string{}}
	p.join("ann")
	l := &limited{pair: p, stores: [2]store.Store{p.mem, db}, mine: [2]map[task.ID]store.Claimed{{}, {}}, of: map[string]*account{}}
	t.Repeat(map[string]func(*rapid.T){
		"":             func(t *rapid.T) { p.T = t; l.compare() },
		"enqueue":      func(*rapid.T) { l.enqueue() },
		"enqueue more": func(*rapid.T) { l.enqueue() },
		"claim":        func(*rapid.T) { l.claim(1 + p.number(4, "limit")) },
		"claim all":    func(*rapid.T) { l.claim(1000) },
		"finish":       func(*rapid.T) { l.finish() },
		"finish more":  func(*rapid.T) { l.finish() },
		"time passes": func(*rapid.T) {
			time.Sleep(pick(p, []time.Duration{time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second}, "for"))
		},
		"set a limit":    func(*rapid.T) { l.set() },
		"delete a limit": func(*rapid.T) { l.unset() },
		"rest": func(*rapid.T) {
			r := store.Rest{Name: pick(p, limitNames, "name"), For: pick(p, []time.Duration{50 * time.Millisecond, 2 * time.Second}, "for")}
			l.operate(r)
			a := l.account(r.Name)
			if at := time.Now().Add(r.For); at.After(a.rest) {
				a.rest = at
			}
		},
	})
}

func (l *limited) account(name string) *account {
	if l.of[name] == nil {
		l.of[name] = &account{}
	}
	return l.of[name]
}

// operate applies a command to both stores. It reports whether they took it.
func (l *limited) operate(cmd store.Command) bool {
	got := askAt(l.pair, l.stores, describe("Operate", cmd), func(_ int, s store.Store) (error, error) {
		got, err := s.Operate(context.Background(), namespace, cmd)
		if err != nil {
			return nil, err
		}
		return got[0].Err, nil
	}, func(err error) error { return err })
	return got[0] == nil
}

func (l *limited) set() {
	name := pick(l.pair, limitNames, "name")
	var set store.Limit
	if l.number(3, "a rate") > 0 || strings.HasPrefix(name, store.LimitRate) {
		r := pick(l.pair, []task.Rate{{Starts: 1, Per: time.Second, Burst: 1}, {Starts: 20, Per: time.Second, Burst: 5}, {Starts: 1, Per: time.Hour, Burst: 2}}, "rate")
		if strings.HasPrefix(name, store.LimitRate) {
			// The first claim that meets a longer wait of another rate shortens it (rules.Arrival.FitClaim), in each store at
			// another time.
			r.Per = min(r.Per, rules.ClaimLag/2)
		}
		set.Starts, set.Per, set.Burst = r.Starts, r.Per, r.Burst
	}
	if !strings.HasPrefix(name, store.LimitRate) {
		set.Running = l.number(4, "running")
	}
	if strings.HasPrefix(name, store.LimitLabel) {
		set.Weight = l.number(3, "weight")
	}
	if set == (store.Limit{}) {
		return
	}
	l.operate(store.SetLimit{Name: name, Limit: set})
	a := l.account(name)
	a.set, a.starts = set, nil
}

func (l *limited) unset() {
	name := pick(l.pair, limitNames, "name")
	if l.operate(store.SetLimit{Name: name, Delete: true}) {
		a := l.account(name)
		a.set, a.starts = store.Limit{}, nil
	}
}

func (l *limited) enqueue() {
	var sub store.Submission
	for range 1 + l.number(6, "tasks") {
		n := task.New{
			ID: l.newID(), Type: pick(l.pair, modelTypes, "type"), Queue: pick(l.pair, modelQueues[:2], "queue"), Input: json.RawMessage("1"),
			Priority: task.DefaultPriority - l.number(2, "priority"), MaxAttempts: 1000, Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
			Options: task.Options{RateLimit: pick(l.pair, ownRates, "rate")},
		}
		if l.rarely(2, "turns") {
			n.FairBy, n.Labels = "tenant", map[string]string{"tenant": pick(l.pair, []string{"a", "b", "c"}, "tenant")}
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	askAt(l.pair, l.stores, describe("Enqueue", sub), func(_ int, s store.Store) ([]store.Enqueued, error) {
		return s.Enqueue(context.Background(), namespace, nil, sub)
	}, func(a []store.Enqueued) []store.Enqueued { return a })
}

// claim lets one store claim, and the other one the same tasks. If there are fewer than asked for, neither has more.
func (l *limited) claim(n int) {
	first := l.number(2, "store")
	r := l.request(n)
	got := l.start(first, r)
	for i := range got {
		r.IDs = append(r.IDs, got[i].Task.ID)
	}
	if len(got) > 0 {
		other := r
		other.Limit = len(got)
		if also := l.start(1-first, other); len(also) != len(got) {
			l.Fatalf("%s starts %v, and of them %s starts %d", modelNames[first], r.IDs, modelNames[1-first], len(also))
		}
	}
	for i := range got {
		l.started(&got[i].Task)
	}
	if len(got) == n {
		return
	}
	var next [2]time.Duration
	for i := range l.stores {
		next[i] = l.none(i)
		if next[i] == 0 {
			l.Fatalf("%s starts nothing, and wants to claim again at once", modelNames[i])
		}
	}
	// Nothing may start before a store says that a claim is useful.
	if i := l.number(2, "store that waits"); l.rarely(3, "wait until the next claim is useful") {
		if next[i] < 0 {
			next[i] = 10 * time.Second
		}
		time.Sleep(next[i] - time.Microsecond)
		l.none(1 - i)
	}
}

// none claims all that may start, which is nothing.
func (l *limited) none(i int) time.Duration {
	l.Helper()
	r := l.request(1000)
	res, err := l.stores[i].Claim(context.Background(), namespace, r)
	if err != nil || len(res.Tasks) > 0 {
		l.Fatalf("%s starts %d tasks more, %v", modelNames[i], len(res.Tasks), err)
	}
	return res.Next
}

func (l *limited) request(n int) store.ClaimRequest {
	return store.ClaimRequest{
		Worker: "ann", Name: "ann", LeaseID: l.newLeaseID(), TTL: 1000 * time.Hour, Limit: n, Slots: 1000,
		Types: map[string]int{modelTypes[0]: 1, modelTypes[1]: 1},
	}
}

func (l *limited) start(i int, r store.ClaimRequest) []store.Claimed {
	l.Log(modelNames[i], describe("Claim", r))
	res, err := l.stores[i].Claim(context.Background(), namespace, r)
	if err != nil {
		l.Fatal(err)
	}
	for _, c := range res.Tasks {
		l.mine[i][c.Task.ID] = c
	}
	return res.Tasks
}

// started enters a start into the accounts.
func (l *limited) started(t *task.Task) {
	now := time.Now()
	for _, name := range store.LimitNames(t.Queue, t.Type, store.LaneGroup(t.Options, t.Labels)) {
		a := l.account(name)
		if now.Before(a.rest) {
			l.Errorf("%s starts while %s rests until %s", t.ID, name, a.rest)
		}
		if n := l.running(name); a.set.Running > 0 && n > a.set.Running {
			l.Errorf("%s starts, and %d tasks of %s run", t.ID, n, name)
		}
		rate := a.set.Rate()
		if a.set == (store.Limit{}) && name == store.LimitRate+t.RateLimit.Key {
			rate = t.RateLimit
		}
		a.starts = append(a.starts, now)
		n := len(slices.DeleteFunc(slices.Clone(a.starts), func(at time.Time) bool { return now.Sub(at) > rate.Per }))
		if rate.Starts > 0 && n > rate.Starts+rate.Burst {
			l.Errorf("%d tasks of %s start in %s", n, name, rate.Per)
		}
	}
}

// running counts the running tasks of a limit.
func (l *limited) running(name string) (n int) {
	for _, c := range l.mine[0] {
		if slices.Contains(store.LimitNames(c.Task.Queue, c.Task.Type, store.LaneGroup(c.Task.Options, c.Task.Labels)), name) {
			n++
		}
	}
	return n
}

// finish ends a running task, or lets it be tried again.
func (l *limited) finish() {
	ids := slices.SortedFunc(maps.Keys(l.mine[0]), task.ID.Compare)
	if len(ids) == 0 {
		return
	}
	id := pick(l.pair, ids, "task")
	f := store.Finish{Elapsed: time.Millisecond, CodeVersion: 1, Outcome: task.OutcomeSuccess, Output: json.RawMessage("1")}
	switch l.number(4, "ending") {
	case 2:
		f.Outcome, f.Output = task.OutcomeReleased, nil
	case 3:
		f.Outcome, f.Output, f.Delay = task.OutcomeFailure, nil, pick(l.pair, delays, "delay")
		f.Error = &task.Error{Kind: task.KindHandler, Message: "no luck"}
		f.Decision = &task.Decision{Kind: task.DecideRetry, Reason: task.Reason{Policy: "test", Version: 1, Text: "the test says so"}}
	}
	askAt(l.pair, l.stores, describe("Finish "+id.String(), f), func(i int, s store.Store) (struct{}, error) {
		f.Lease = l.mine[i][id].Lease
		got, err := s.Finish(context.Background(), namespace, f)
		if err == nil {
			err = got[0].Err
		}
		return struct{}{}, err
	}, func(a struct{}) struct{} { return a })
	delete(l.mine[0], id)
	delete(l.mine[1], id)
}

// compare compares the rows and the limits of both stores.
func (l *limited) compare() {
	var snaps [2]*store.Snapshot
	var pages [2][]store.LimitRow
	for i, s := range l.stores {
		snap, err := s.Snapshot(context.Background(), namespace)
		if err != nil {
			l.Fatal(err)
		}
		for _, v := range store.Check(snap) {
			if v.Invariant != "I8" { // nobody reaps
				l.Errorf("%s: store.Check: %v", modelNames[i], v)
			}
		}
		snaps[i] = rowsComparable(snap)
		page, err := s.Limits(context.Background(), namespace, store.LimitFilter{Names: limitNames})
		if err != nil {
			l.Fatal(err)
		}
		for j := range page.Limits {
			row := &page.Limits[j]
			if n := l.running(row.Name); row.Running > 0 && row.InUse != n {
				l.Errorf("%s: %s has %d running tasks, want %d", modelNames[i], row.Name, row.InUse, n)
			}
			if !row.Arrival.After(page.Now) { // it may be forgotten
				row.Arrival = time.Time{}
			}
			if !row.RestUntil.After(page.Now) {
				row.RestUntil = time.Time{}
			}
		}
		pages[i] = page.Limits
	}
	l.same("Snapshot", snaps[0], snaps[1])
	l.same("Limits", pages[0], pages[1])
}
