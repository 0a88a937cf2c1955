package weaver_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

var tickType = weaver.Define[string, string]("acme.test.tick.v1")

// ticking is a store with engines, whose handler records the scheduled times of its runs.
type ticking struct {
	t      *testing.T
	store  store.Store
	client *weaver.Client
	mu     sync.Mutex
	times  []time.Time   // as the handler got them
	early  int           // runs that began before their time
	takes  time.Duration // of the handler
	stops  []func()
}

func newTicking(t *testing.T) *ticking {
	k := &ticking{t: t, store: memstore.New()}
	var err error
	if k.client, err = weaver.NewClient(k.store, weaver.ClientConfig{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.stop)
	return k
}

// start runs an engine until stop.
func (k *ticking) start(change ...func(*weaver.Config)) {
	k.t.Helper()
	cfg := weaver.Config{Logger: slog.New(slog.NewTextHandler(k.t.Output(), nil)), Handlers: []weaver.Handler{tickType.Handler(k.handle)}}
	for _, c := range change {
		c(&cfg)
	}
	eng, err := weaver.New(k.store, cfg)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	k.stops = append(k.stops, func() {
		cancel()
		if err := <-done; err != nil {
			k.t.Error(err)
		}
	})
	synctest.Wait()
}

func (k *ticking) stop() {
	for _, s := range k.stops {
		s()
	}
	k.stops = nil
}

func (k *ticking) handle(ctx context.Context, in string) (string, error) {
	at, ok := weaver.ScheduledAt(ctx)
	if !ok {
		return "", weaver.Permanent(errors.New("the run has no scheduled time"))
	}
	k.mu.Lock()
	k.times = append(k.times, at)
	if time.Now().Before(at) {
		k.early++
	}
	k.mu.Unlock()
	select {
	case <-time.After(k.takes):
		return in, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ran returns the times of the runs so far, sorted, as texts.
func (k *ticking) ran() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.early > 0 {
		k.t.Errorf("%d runs began before their time", k.early)
	}
	slices.SortFunc(k.times, time.Time.Compare)
	out := make([]string, len(k.times))
	for i, at := range k.times {
		out[i] = at.UTC().Format("02 15:04:05")
	}
	return out
}

func (k *ticking) put(s weaver.Schedule) weaver.ScheduleInfo {
	k.t.Helper()
	info, err := k.client.PutSchedule(context.Background(), s)
	if err != nil {
		k.t.Fatal(err)
	}
	return info
}

func (k *ticking) info(name string) weaver.ScheduleInfo {
	k.t.Helper()
	info, err := k.client.Schedule(context.Background(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	return info
}

// fires returns the records of a schedule, oldest first, as texts.
func (k *ticking) fires(name string) (out []string) {
	k.t.Helper()
	list, err := k.client.ScheduleFires(context.Background(), name, time.Time{}, 1000)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, f := range slices.Backward(list) {
		text := fmt.Sprintf("%s %s", f.At.UTC().Format("15:04:05"), f.Kind)
		if f.Count > 1 {
			text += fmt.Sprintf(" ×%d", f.Count)
		}
		if f.Reason != "" {
			text += ": " + f.Reason
		}
		out = append(out, text)
	}
	return out
}

func (k *ticking) want(what string, got []string, want ...string) {
	k.t.Helper()
	if !slices.Equal(got, want) {
		k.t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Bubbles begin at midnight of 2000-01-01 in UTC.

func TestSchedule_FiresOnceAcrossEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTicking(t)
		for range 3 {
			k.start()
		}
		k.put(weaver.NewSchedule("tick", tickType.With("x"), weaver.Every(time.Minute)))
		time.Sleep(24*time.Hour + time.Second)
		got := k.ran()
		if len(got) != 24*60 || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%d runs in a day, %d of them for different times; want 1440", len(got), len(slices.Compact(got)))
		}
		if at := k.info("tick").Last; at == nil || at.State != "succeeded" {
			t.Errorf("the last run is %+v", at)
		}
	})
}

func TestSchedule_CivilTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTicking(t)
		k.start()
		k.put(weaver.NewSchedule("nightly", tickType.With("x"), weaver.Cron("30 2 * * *", "Europe/Berlin"), weaver.Between(time.Date(2000, 3, 25, 0, 0, 0, 0, time.UTC), time.Date(2000, 3, 28, 0, 0, 0, 0, time.UTC))))
		time.Sleep(100 * 24 * time.Hour)
		k.want("times around the change of the clocks", k.ran(), "25 01:30:00", "26 01:00:00", "27 00:30:00")
		if info := k.info("nightly"); !info.Next.IsZero() {
			t.Errorf("after its last time it fires next at %v", info.Next)
		}
	})
}

func TestSchedule_Overlaps(t *testing.T) {
	for _, c := range []struct {
		overlap weaver.OverlapPolicy
		ran     []string
		fires   []string
	}{
		{weaver.OverlapSkip, []string{"01 00:01:00", "01 00:03:00"}, []string{"00:01:00 fired", "00:02:00 skipped: the run of 2000-01-01T00:01:00Z has not ended", "00:03:00 fired"}},
		{weaver.OverlapQueue, []string{"01 00:01:00", "01 00:02:00"}, []string{"00:01:00 fired", "00:02:00 fired", "00:03:00 queued"}},
		{weaver.OverlapCancelRunning, []string{"01 00:01:00", "01 00:02:00", "01 00:03:00"}, []string{"00:01:00 fired", "00:02:00 fired", "00:03:00 fired"}},
		{weaver.OverlapAllow, []string{"01 00:01:00", "01 00:02:00", "01 00:03:00"}, []string{"00:01:00 fired", "00:02:00 fired", "00:03:00 fired"}},
	} {
		t.Run(string(c.overlap), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newTicking(t)
				k.takes = 90 * time.Second
				k.start()
				k.put(weaver.NewSchedule("s", tickType.With("x"), weaver.Every(time.Minute), weaver.Overlap(c.overlap)))
				time.Sleep(3*time.Minute + 20*time.Second)
				k.want("runs", k.ran(), c.ran...)
				k.want("records", k.fires("s"), c.fires...)
			})
		})
	}
}

func TestSchedule_OutageAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		k := newTicking(t)
		k.put(weaver.NewSchedule("hourly", tickType.With("x"), weaver.Every(time.Hour)))
		k.put(weaver.NewSchedule("daily", tickType.With("y"), weaver.Cron("@daily", ""), weaver.CatchUp(time.Minute)))
		time.Sleep(29*time.Hour + 30*time.Minute)
		k.start()
		time.Sleep(time.Minute)
		k.want("after an outage", k.fires("hourly"), "01:00:00 skipped ×28: no engine was running", "05:00:00 fired")
		k.want("with a short catch-up", k.fires("daily"), "00:00:00 skipped: no engine was running until 5h30m0s later, longer than the catch-up time of 1m")

		if _, err := k.client.PauseSchedule(ctx, "hourly", weaver.By("ann"), weaver.Reason("migration")); err != nil {
			t.Fatal(err)
		}
		if _, err := k.client.PauseSchedule(ctx, "hourly"); !errors.Is(err, store.ErrState) {
			t.Errorf("a second pause: %v", err)
		}
		time.Sleep(5 * time.Hour)
		if p := k.info("hourly").Paused; p == nil || p.By != "ann" || p.Reason != "migration" {
			t.Errorf("the pause is %+v", p)
		}
		if _, err := k.client.ResumeSchedule(ctx, "hourly"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		k.want("times of a pause do not fire", k.fires("hourly"), "01:00:00 skipped ×28: no engine was running", "05:00:00 fired", "11:00:00 fired")
	})
}

func TestSchedule_TriggerAndBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		k := newTicking(t)
		k.put(weaver.NewSchedule("s", tickType.With("x"), weaver.Every(time.Hour)))
		time.Sleep(10*time.Hour + time.Minute)
		k.start()
		time.Sleep(time.Minute)
		if info, err := k.client.TriggerSchedule(ctx, "s", weaver.By("ann")); err != nil || info.Last == nil {
			t.Fatalf("trigger: %+v, %v", info, err)
		}
		time.Sleep(time.Second)
		k.want("after the trigger", k.ran(), "01 10:00:00", "01 10:02:00")
		begin := time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC)
		for _, want := range []int{3, 0} { // the second one fires nothing
			got, err := k.client.BackfillSchedule(ctx, "s", begin, begin.Add(3*time.Hour), weaver.By("ann"))
			if err != nil || got.Fired != want || got.Times != 3 {
				t.Errorf("backfill: %+v, %v; want %d runs", got, err, want)
			}
		}
		time.Sleep(time.Second)
		k.want("after the backfill", k.fires("s"), "01:00:00 skipped ×2: no engine was running", "03:00:00 fired: backfill", "04:00:00 fired: backfill", "05:00:00 fired: backfill",
			"06:00:00 skipped ×4: no engine was running", "10:00:00 fired", "10:02:00 fired: triggered")
		got, err := k.client.BackfillSchedule(ctx, "s", begin.Add(-5*time.Hour), begin.Add(7*time.Hour+time.Second))
		if err != nil || got.Times != 13 || got.Fired != 9 { // 22:00 and 23:00 before it existed, midnight, and those skipped
			t.Errorf("backfill of the rest: %+v, %v", got, err)
		}
		for _, bad := range [][2]time.Time{{begin, begin}, {begin, begin.Add(48 * time.Hour)}, {begin.AddDate(-10, 0, 0), begin}} {
			if _, err := k.client.BackfillSchedule(ctx, "s", bad[0], bad[1]); !errors.Is(err, weaver.ErrInvalidOption) {
				t.Errorf("backfill from %v to %v: %v", bad[0], bad[1], err)
			}
		}
	})
}

func TestSchedule_RunUntilIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTicking(t)
		k.put(weaver.NewSchedule("s", tickType.With("x"), weaver.Every(time.Hour)))
		time.Sleep(90 * time.Minute)
		eng, err := weaver.New(k.store, weaver.Config{Handlers: []weaver.Handler{tickType.Handler(k.handle)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.want("runs", k.ran(), "01 01:00:00")
	})
}

func TestSchedule_Jobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTicking(t)
		k.start()
		j := weaver.NewJob("report")
		j.MaxParallel(1)
		a := j.Add("a", tickType.With("a"))
		j.Add("b", tickType.With("b"), weaver.Needs(a))
		k.put(weaver.NewSchedule("s", j, weaver.Every(time.Hour)))
		time.Sleep(2*time.Hour + time.Minute)
		k.want("runs", k.ran(), "01 01:00:00", "01 01:00:00", "01 02:00:00", "01 02:00:00")
		if last := k.info("s").Last; last == nil || last.State != "succeeded" {
			t.Errorf("the last run is %+v", last)
		}
		tasks, _, err := k.client.List(t.Context(), weaver.Filter{})
		keys := make(map[string]int) // each run has its own
		for _, info := range tasks {
			keys[info.ConcurrencyKey]++
		}
		if err != nil || len(keys) != 2 || keys[task.ParallelKey(tasks[0].JobID)] != 2 {
			t.Errorf("the concurrency keys of the runs are %v, %v", keys, err)
		}
	})
}

func TestSchedule_Declared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTicking(t)
		program := func(name string, version int, schedules ...weaver.Schedule) func(*weaver.Config) {
			return func(cfg *weaver.Config) {
				cfg.Program, cfg.ProgramVersion, cfg.Schedules = name, version, schedules
			}
		}
		hourly := func(name string) weaver.Schedule {
			return weaver.NewSchedule(name, tickType.With("x"), weaver.Every(time.Hour))
		}
		standing := func() (out []string) {
			list, err := k.client.Schedules(context.Background(), "", 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				text := fmt.Sprintf("%s v%d", s.Name, s.Version)
				if s.Paused != nil {
					text += " paused by " + cmp.Or(s.Paused.By, s.Paused.Reason)
				}
				out = append(out, text)
			}
			return out
		}
		k.put(hourly("dynamic"))
		k.start(program("shop", 1, hourly("a"), hourly("b")))
		k.start(program("mail", 1, hourly("m")))
		k.want("at first", standing(), "a v1", "b v1", "dynamic v1", "m v1")
		// Version 2 changes a and no longer has b, beside an engine of version 1 that starts again.
		k.start(program("shop", 2, weaver.NewSchedule("a", tickType.With("x"), weaver.Every(time.Minute))))
		k.start(program("shop", 1, hourly("a"), hourly("b")))
		k.want("with a newer version", standing(), "a v2", "b v1 paused by version 2 of shop no longer declares it", "dynamic v1", "m v1")
		k.stop()
		k.start(program("shop", 1, hourly("a"), hourly("b")))
		k.want("after a rollback", standing(), "a v3", "b v1", "dynamic v1", "m v1")
		if _, err := k.client.PauseSchedule(t.Context(), "a", weaver.By("ann")); err != nil {
			t.Fatal(err)
		}
		k.stop()
		k.start(program("shop", 3, hourly("a"), hourly("b"), hourly("m")))
		k.want("a pause by a person stays, and another program's schedule", standing(), "a v3 paused by ann", "b v1", "dynamic v1", "m v1")
	})
}

func TestSchedule_WrongInput(t *testing.T) { synctest.Test(t, wrongSchedules) }

func wrongSchedules(t *testing.T) {
	k := newTicking(t)
	day := weaver.Cron("@daily", "")
	for name, c := range map[string]struct {
		s    weaver.Schedule
		want string
	}{
		"empty":       {weaver.Schedule{}, "NewSchedule"},
		"no name":     {weaver.NewSchedule("", tickType.With("x"), day), "no name"},
		"minute":      {weaver.NewSchedule("s", tickType.With("x"), weaver.Cron("61 * * * *", "")), "61"},
		"zone":        {weaver.NewSchedule("s", tickType.With("x"), weaver.Cron("@daily", "Europe/Berln")), "Europe/Berln"},
		"february":    {weaver.NewSchedule("s", tickType.With("x"), weaver.Cron("0 0 30 2 *", "")), "never"},
		"every":       {weaver.NewSchedule("s", tickType.With("x"), weaver.Every(time.Millisecond)), "1s"},
		"overlap":     {weaver.NewSchedule("s", tickType.With("x"), day, weaver.Overlap("maybe")), "maybe"},
		"catch-up":    {weaver.NewSchedule("s", tickType.With("x"), day, weaver.CatchUp(-1)), "CatchUp"},
		"key":         {weaver.NewSchedule("s", tickType.With("x", weaver.IdempotencyKey("k")), day), "IdempotencyKey"},
		"at":          {weaver.NewSchedule("s", tickType.With("x", weaver.At(time.Unix(1e9, 0))), day), "At"},
		"empty job":   {weaver.NewSchedule("s", weaver.NewJob("j"), day), "empty"},
		"nothing":     {weaver.NewSchedule("s", nil, day), "nothing"},
		"large input": {weaver.NewSchedule("s", tickType.With(strings.Repeat("x", 100_000)), day), "limit"},
	} {
		_, err := k.client.PutSchedule(t.Context(), c.s)
		if !errors.Is(err, weaver.ErrInvalidSchedule) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := weaver.New(k.store, weaver.Config{Schedules: []weaver.Schedule{weaver.NewSchedule("s", tickType.With("x"), day), weaver.NewSchedule("s", tickType.With("x"), day)}}); !errors.Is(err, weaver.ErrConfig) {
		t.Errorf("two schedules of one name: %v", err)
	}
	if _, err := k.client.TriggerSchedule(t.Context(), "none"); !errors.Is(err, weaver.ErrNotFound) {
		t.Errorf("an unknown schedule: %v", err)
	}
}
