package limits_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// size is the size of a storm.
type size struct {
	processes, keys int
	kills           int // one per second
}

func sizeOf(t *testing.T) size {
	t.Helper()
	full := size{processes: 16, keys: 100, kills: 300}
	switch text := os.Getenv("WEAVER_LIMITS"); text {
	case "":
		return size{processes: 3, keys: 8, kills: 4}
	case "full":
	default:
		var err error
		if full.kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("WEAVER_LIMITS is %q: want full, a number of kills, or nothing", text)
		}
	}
	return full
}

func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	run(t, filepath.Join(t.TempDir(), "weaver.db"), sizeOf(t))
}

func TestLimitsOnPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	run(t, pgtest.Migrated(t, "limits", func(url string) error {
		ctx := pgharness.With(context.Background(), pgharness.Settings{FsyncOff: true})
		db, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
	}), sizeOf(t))
}

// rates are the rates of the keys, in turn. The short ones show errors of milliseconds.
var rates = []task.Rate{
	{Starts: 10, Per: time.Second, Burst: 3},
	{Starts: 10, Per: time.Second, Burst: 1},
	{Starts: 10, Per: 100 * time.Millisecond, Burst: 2},
	{Starts: 10, Per: time.Second, Burst: 10},
}

const (
	narrow  = "narrow" // the queue with a limit of running tasks
	backlog = 8        // open tasks of a key
)

// storm is a storm as its client sees it.
type storm struct {
	*testing.T
	size
	ctx    context.Context
	client *weaver.Client
	began  beginnings
	keys   []task.Rate
	limits []narrowed
	stored int // tasks
}

// narrowed is a limit of running tasks that was set within a time.
type narrowed struct {
	from, to time.Time
	running  int
}

func run(t *testing.T, at string, size size) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(size.kills)*3*time.Second+15*time.Minute, errors.New("the storm did not end"))
	defer cancel()
	db, err := open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := &storm{T: t, size: size, ctx: ctx, client: client, began: beginnings{at: make(map[attempt]time.Time)}}
	for i := range size.keys {
		r := rates[i%len(rates)]
		r.Key = fmt.Sprintf("key-%d", i)
		s.keys = append(s.keys, r)
	}
	s.limit(4)
	workers := make([]*process, size.processes)
	for i := range workers {
		workers[i] = start(t, at, &s.began)
	}
	kill := time.NewTicker(time.Second)
	defer kill.Stop()
	act := time.NewTicker(50 * time.Millisecond)
	defer act.Stop()
	for kills, acts := 0, 0; kills < size.kills || s.open() > 0; acts++ {
		select {
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		case <-kill.C:
			if kills < size.kills {
				w := &workers[kills%len(workers)]
				(*w).kill()
				*w = start(t, at, &s.began)
				kills++
			}
		case <-act.C:
			if kills < size.kills {
				s.feed()
			}
			if acts%8 == 0 {
				s.limit(1 + rand.IntN(8))
			}
		}
	}
	for _, w := range workers {
		w.end()
	}
	snap, err := db.Snapshot(ctx, weaver.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	s.check(snap)
}

// limit sets the limit of running tasks of the narrow queue.
func (s *storm) limit(n int) {
	s.Helper()
	from := time.Now()
	if err := s.client.SetLimit(s.ctx, store.LimitQueue+narrow, weaver.Limit{Running: n}); err != nil {
		s.Fatal(err)
	}
	s.limits = append(s.limits, narrowed{from, time.Now(), n})
}

var unended = []task.State{task.Pending, task.Ready, task.Running}

// open returns the number of open tasks, or 1,000 if there are more.
func (s *storm) open() int {
	s.Helper()
	tasks, _, err := s.client.List(s.ctx, weaver.Filter{States: unended, Limit: store.MaxLimit})
	if err != nil {
		s.Fatal(err)
	}
	return len(tasks)
}

// feed gives each key as many open tasks as it is to have.
func (s *storm) feed() {
	s.Helper()
	tasks, _, err := s.client.List(s.ctx, weaver.Filter{States: unended, Limit: store.MaxLimit})
	if err != nil {
		s.Fatal(err)
	}
	open := make(map[string]int)
	for i := range tasks {
		open[tasks[i].Labels["key"]]++
	}
	for _, r := range s.keys {
		n := backlog - open[r.Key]
		if n < backlog/2 {
			continue
		}
		typ, queue := call, "wide"
		if rand.IntN(2) == 0 {
			typ = turn
		}
		if rand.IntN(2) == 0 {
			queue = narrow
		}
		takes := make([]time.Duration, n)
		for i := range takes {
			takes[i] = time.Duration(rand.IntN(50)) * time.Millisecond
		}
		if _, err := typ.EnqueueMany(s.ctx, s.client, takes, weaver.Queue(queue), weaver.RateLimit(r.Key, r.Starts, r.Per, r.Burst),
			weaver.Label("key", r.Key), weaver.Label("tenant", fmt.Sprint(rand.IntN(3)))); err != nil {
			s.Fatal(err)
		}
		s.stored += n
	}
}

// ran is an attempt of the narrow queue. It held its lease at least from the start of its handler until its end was
// written.
type ran struct {
	attempt
	claimed     time.Time // the start of the transaction that claimed it
	began, left time.Time
}

// check checks the attempts.
func (s *storm) check(snap *store.Snapshot) {
	s.Helper()
	tasks := make(map[weaver.TaskID]*task.Task)
	states := make(map[task.State]int)
	for i := range snap.Tasks {
		tasks[snap.Tasks[i].ID] = &snap.Tasks[i]
		states[snap.Tasks[i].State]++
	}
	if n := states[task.Succeeded] + states[task.Failed]; n != s.stored {
		s.Errorf("%d tasks are stored, %v", s.stored, states)
	}
	starts := make(map[string][]time.Time)
	var runs []ran
	lost := 0
	for i := range snap.Attempts {
		a := &snap.Attempts[i]
		t := tasks[a.TaskID]
		starts[t.RateLimit.Key] = append(starts[t.RateLimit.Key], a.StartedAt)
		at := attempt{a.TaskID, a.No}
		began, ok := s.began.at[at]
		if a.Outcome == task.OutcomeLeaseLost {
			lost++
		}
		if ok && t.Queue == narrow && began.Before(a.FinishedAt) {
			runs = append(runs, ran{at, a.StartedAt, began, a.FinishedAt})
		}
	}
	s.Logf("%d tasks: %v; %d attempts, %d of them lost", len(tasks), states, len(snap.Attempts), lost)
	most := make([]int, len(rates))
	for i, r := range s.keys {
		kind := i % len(rates)
		most[kind] = max(most[kind], s.rate(r, starts[r.Key]))
	}
	for i, r := range rates {
		s.Logf("a rate of %d in %s with a burst of %d: at most %d starts in a period", r.Starts, r.Per, r.Burst, most[i])
	}
	s.running(runs)
}

// rate checks all windows of a key, and returns the most starts in one.
func (s *storm) rate(r task.Rate, starts []time.Time) (most int) {
	s.Helper()
	slices.SortFunc(starts, time.Time.Compare)
	first := 0
	for i := range starts {
		for starts[i].Sub(starts[first]) > r.Per {
			first++
		}
		if n := i - first + 1; n > most {
			most = n
			if n > r.Starts+r.Burst {
				s.Errorf("%s: %d starts from %s to %s", r.Key, n, starts[first], starts[i])
			}
		}
	}
	if most == 0 {
		s.Errorf("%s: nothing started", r.Key)
	}
	return most
}

// running checks how many tasks of the narrow queue ran at once. Those that run at an instant also ran when the last of
// them was claimed, between its transaction's start and that instant, and the limit of that time let it start.
func (s *storm) running(runs []ran) {
	s.Helper()
	slices.SortFunc(runs, func(a, b ran) int { return a.began.Compare(b.began) })
	met := make(map[int]int)
	var now []ran
	for _, r := range runs {
		now = append(slices.DeleteFunc(now, func(o ran) bool { return !o.left.After(r.began) }), r)
		last := slices.MaxFunc(now, func(a, b ran) int { return a.claimed.Compare(b.claimed) }).claimed
		allowed := s.most(last, r.began)
		if len(now) > allowed {
			s.Errorf("%d tasks of the queue ran at %s, and its limit was %d: %v", len(now), r.began, allowed, now)
		}
		met[len(now)]++
	}
	s.Logf("%d limits; tasks that ran at once, and how often: %v", len(s.limits), met)
}

// most returns the largest limit that may have held within a time.
func (s *storm) most(from, to time.Time) (n int) {
	for i := range slices.Backward(s.limits) {
		if l := &s.limits[i]; !l.from.After(to) {
			if n = max(n, l.running); l.to.Before(from) {
				break
			}
		}
	}
	return n
}
