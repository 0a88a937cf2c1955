package schedules_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

const processes = 8

// killsOf returns the number of kills, one each second.
func killsOf(t *testing.T) int {
	t.Helper()
	switch text := os.Getenv("WEAVER_SCHEDULES"); text {
	case "":
		return 4
	case "full":
		return 600
	default:
		t.Fatalf("WEAVER_SCHEDULES is %q: want full, or nothing", text)
		return 0
	}
}

func TestSchedules(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	storm(t, filepath.Join(t.TempDir(), "weaver.db"), killsOf(t))
}

func TestSchedulesOnPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	storm(t, pgtest.Migrated(t, "schedules", func(url string) error {
		ctx := pgharness.With(context.Background(), pgharness.Settings{FsyncOff: true})
		db, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
	}), killsOf(t))
}

// rules are the schedules: five times per second.
var rules = []struct {
	name    string
	every   time.Duration
	overlap weaver.OverlapPolicy
	takes   time.Duration
}{
	{"allow-1", time.Second, weaver.OverlapAllow, time.Second},
	{"allow-2", time.Second, weaver.OverlapAllow, 0},
	{"allow-3", time.Second, weaver.OverlapAllow, 3 * time.Second},
	{"skip", time.Second, weaver.OverlapSkip, 1500 * time.Millisecond},
	{"queue", 2 * time.Second, weaver.OverlapQueue, 2500 * time.Millisecond},
	{"cancel", 2 * time.Second, weaver.OverlapCancelRunning, 2500 * time.Millisecond},
}

func storm(t *testing.T, at string, kills int) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(kills)*3*time.Second+15*time.Minute, errors.New("the storm did not end"))
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
	s := &checked{T: t, ctx: ctx, client: client}
	workers := make([]*process, processes)
	for i := range workers {
		workers[i] = start(t, at)
	}
	for _, r := range rules {
		if _, err := client.PutSchedule(ctx, weaver.NewSchedule(r.name, tick.With(work{r.takes}), weaver.Every(r.every), weaver.Overlap(r.overlap))); err != nil {
			t.Fatal(err)
		}
	}
	kill := time.NewTicker(time.Second)
	defer kill.Stop()
	for n := 0; n < kills; n++ {
		s.await(kill.C)
		w := &workers[n%len(workers)]
		(*w).kill()
		*w = start(t, at)
		if n != kills/2 {
			continue
		}
		for _, w := range workers { // an outage, of three times at least
			w.kill()
		}
		for range 4 {
			s.await(kill.C)
		}
		for i := range workers {
			workers[i] = start(t, at)
		}
	}
	// These must be decided now: the storm ends when it is, and has met what the rules differ in.
	until := time.Now()
	for !s.decided(until) {
		s.await(kill.C)
	}
	for _, w := range workers {
		w.end()
	}
	for _, r := range rules {
		s.check(r.name, r.every, r.overlap, until)
	}
	snap, err := db.Snapshot(ctx, weaver.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
}

// checked is the storm as its client sees it.
type checked struct {
	*testing.T
	ctx    context.Context
	client *weaver.Client
}

func (s *checked) await(c <-chan time.Time) {
	s.Helper()
	select {
	case <-s.ctx.Done():
		s.Fatal(context.Cause(s.ctx))
	case <-c:
	}
}

// decided reports whether all times up to an instant have fired or are skipped, and all their runs have ended.
func (s *checked) decided(until time.Time) bool {
	s.Helper()
	list, err := s.client.Schedules(s.ctx, "", 0)
	if err != nil {
		s.Fatal(err)
	}
	for i := range list {
		if x := &list[i]; !x.Next.After(until) || len(x.Queued) > 0 && !x.Queued[0].After(until) {
			return false
		}
	}
	for _, r := range rules {
		for at, task := range s.runs(r.name) {
			if !at.After(until) && !task.State.Terminal() {
				return false
			}
		}
	}
	return true
}

// runs returns the runs of a schedule by their times.
func (s *checked) runs(name string) map[time.Time]weaver.TaskInfo {
	s.Helper()
	runs := make(map[time.Time]weaver.TaskInfo)
	for f := (weaver.Filter{Labels: map[string]string{"weaver.schedule": name}, Limit: store.MaxLimit}); ; {
		page, next, err := s.client.List(s.ctx, f)
		if err != nil {
			s.Fatal(err)
		}
		for i := range page {
			at, err := time.Parse(time.RFC3339Nano, page[i].Metadata["weaver.scheduled_at"])
			if err != nil {
				s.Fatalf("%s: task %s: %v", name, page[i].ID, err)
			}
			if other, twice := runs[at]; twice {
				s.Errorf("%s: %s fired twice: tasks %s and %s", name, at, other.ID, page[i].ID)
			}
			runs[at] = page[i]
		}
		if f.After = next; next == "" {
			return runs
		}
	}
}

// fires returns the records of a schedule, oldest first.
func (s *checked) fires(name string) (all []weaver.ScheduleFire) {
	s.Helper()
	for before := (time.Time{}); ; {
		page, err := s.client.ScheduleFires(s.ctx, name, before, store.MaxLimit)
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, page...)
		if len(page) < store.MaxLimit {
			slices.Reverse(all)
			return all
		}
		before = page[len(page)-1].At
	}
}

// check compares the records of a schedule with its rule and its runs, up to an instant.
func (s *checked) check(name string, every time.Duration, overlap weaver.OverlapPolicy, until time.Time) {
	s.Helper()
	fires, runs := s.fires(name), s.runs(name)
	skipped := make(map[string]int)
	fired, missed := 0, 0
	for i := range fires {
		f := &fires[i]
		if f.At.After(until) {
			break
		}
		if i > 0 { // no time is left out, and none is there twice
			last := fires[i-1].At
			if !fires[i-1].Until.IsZero() {
				last = fires[i-1].Until
			}
			if f.At.Sub(last) != every {
				s.Errorf("%s: after %s comes %s", name, last, f.At)
			}
		}
		if f.RecordedAt.Before(f.At) {
			s.Errorf("%s: %s was decided at %s", name, f.At, f.RecordedAt)
		}
		run, ran := runs[f.At]
		switch f.Kind {
		case store.FireFired:
			fired++
			if !ran || run.ID != f.Task || run.CreatedAt.Before(f.At) || run.State != weaver.StateSucceeded && (overlap != weaver.OverlapCancelRunning || run.State != weaver.StateCancelled) {
				s.Errorf("%s: %s has fired, and its run is %+v", name, f.At, run)
			}
			continue
		case store.FireSkipped:
			if reason, _, _ := strings.Cut(f.Reason, "the run of "); reason != "" {
				skipped[f.Reason] += f.Count
			} else {
				skipped["the last run has not ended"] += f.Count
			}
		default:
			s.Errorf("%s: %s is %s at the end", name, f.At, f.Kind)
		}
		if ran {
			s.Errorf("%s: %s is %s (%s), and has the run %s", name, f.At, f.Kind, f.Reason, run.ID)
		}
		// Of missed times the latest one is decided with them, by the rule of overlap.
		if f.Reason != "no engine was running" {
			if overlap == weaver.OverlapAllow {
				s.Errorf("%s: %s was skipped: %s", name, f.At, f.Reason)
			}
			continue
		}
		missed += f.Count
		if i+1 == len(fires) || fires[i+1].At.After(f.RecordedAt) || overlap == weaver.OverlapAllow && (fires[i+1].Kind != store.FireFired || !fires[i+1].RecordedAt.Equal(f.RecordedAt)) {
			s.Errorf("%s: %d times to %s were missed, and the latest one did not fire", name, f.Count, f.Until)
		}
	}
	if fired == 0 || missed == 0 {
		s.Errorf("%s: %d times fired, %d were missed", name, fired, missed)
	}
	s.Logf("%s: %d times fired; skipped: %v", name, fired, skipped)
}
