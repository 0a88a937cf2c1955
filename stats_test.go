package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

func (fx *fixture) stats(req ops.StatsRequest) ops.Stats {
	fx.Helper()
	got, err := fx.client.Stats(fx.Context(), req)
	fx.must(err)
	return got
}

// statTexts returns the rows as "type outcome kind count".
func statTexts(s ops.Stats) (list []string) {
	for _, r := range s.Rows {
		list = append(list, fmt.Sprint(r.Type, " ", r.Queue, " ", r.Outcome, " ", r.ErrorKind, " ", r.Count))
	}
	return list
}

func TestStats(t *testing.T) {
	typ := weaver.Define[time.Duration, int]("engine.stats.run.v1", weaver.NoRetry())
	other := weaver.Define[int, int]("engine.stats.other.v1", weaver.Queue("mail"))
	handlers := []weaver.Handler{
		typ.Handler(func(_ context.Context, d time.Duration) (int, error) { time.Sleep(d); return 1, nil }),
		other.Handler(func(context.Context, int) (int, error) { return 0, weaver.Permanent(errors.New("no")) }),
	}

	subtest(t, "attempts are counted by type, outcome and step, with how long they ran", func(fx *fixture) {
		begin := time.Now()
		fx.run(handlers...)
		for _, d := range []time.Duration{time.Second, time.Second, time.Second, 8 * time.Second} {
			enqueue(fx, typ, d)
		}
		enqueue(fx, other, 1)
		time.Sleep(20 * time.Second)

		got := fx.stats(ops.StatsRequest{By: []store.StatBy{store.ByType, store.ByQueue, store.ByOutcome, store.ByErrorKind}})
		equal(fx, "rows", fmt.Sprint(statTexts(got)), "[engine.stats.other.v1 mail failure handler_error 1 engine.stats.run.v1 default success  4]")
		run := got.Rows[1].Run
		for name, c := range map[string]struct{ got, want time.Duration }{
			"p50": {run.P50, time.Second}, "p90": {run.P90, 8 * time.Second}, "p95": {run.P95, 8 * time.Second}, "p99": {run.P99, 8 * time.Second}, "mean": {run.Mean, 11 * time.Second / 4},
		} {
			if (c.got - c.want).Abs() > c.want/8 {
				fx.Errorf("%s = %v, want %v", name, c.got, c.want)
			}
		}

		all := fx.stats(ops.StatsRequest{})
		if len(all.Rows) != 1 || all.Rows[0].Count != 5 || all.Rows[0].Type != "" || !all.Rows[0].From.Equal(all.From) || all.Step != 0 {
			fx.Errorf("without Step and By: %+v, want one row of 5", all)
		}
		steps := fx.stats(ops.StatsRequest{From: begin.Add(-time.Minute), Step: time.Second, Type: typ.Name()})
		equal(fx, "Step", steps.Step, 10*time.Second)
		var n int64
		for _, r := range steps.Rows {
			n += r.Count
			if r.From.UnixMicro()%steps.Step.Microseconds() != 0 || r.From.Before(steps.From) || !r.From.Before(steps.To) {
				fx.Errorf("a row from %v of steps of %v", r.From, steps.Step)
			}
		}
		equal(fx, "attempts of one type", n, 4)
		if len(fx.stats(ops.StatsRequest{Queue: "none"}).Rows) != 0 || len(fx.stats(ops.StatsRequest{To: begin.Add(-time.Hour)}).Rows) != 0 {
			fx.Error("rows of a queue without tasks, or of the past")
		}
		if r := fx.stats(ops.StatsRequest{By: []store.StatBy{store.ByWorker}}).Rows; len(r) != 1 || r[0].Worker == "" {
			fx.Errorf("by worker: %+v", r)
		}
		text, err := json.Marshal(steps)
		var back ops.Stats
		if err != nil || json.Unmarshal(text, &back) != nil || !slices.Equal(statTexts(back), statTexts(steps)) {
			fx.Errorf("%s, %v reads back as %+v", text, err, back)
		}
	})

	subtest(t, "nothing is counted with NoStats, and what is kept ends with KeepStats", func(fx *fixture) {
		stop := fx.runConfig(fx.store, weaver.Config{Handlers: handlers, NoStats: true}).stop
		enqueue(fx, typ, 0)
		time.Sleep(time.Minute)
		if rows := fx.stats(ops.StatsRequest{}).Rows; len(rows) != 0 {
			fx.Errorf("counted %+v", rows)
		}
		fx.must(stop())
		stop = fx.run(handlers...).stop
		enqueue(fx, typ, 0)
		time.Sleep(time.Minute)
		fx.must(stop())
		fx.runConfig(fx.store, weaver.Config{NoStats: true, KeepStats: 5 * time.Hour})
		of := ops.StatsRequest{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(time.Hour)}
		time.Sleep(4 * time.Hour)
		equal(fx, "rows after 4 hours", len(fx.stats(of).Rows), 1)
		time.Sleep(2 * time.Hour)
		equal(fx, "rows after 6 hours", len(fx.stats(of).Rows), 0)
	})

	subtest(t, "a store without statistics says so", func(fx *fixture) {
		bare, err := weaver.NewClient(polled(memstore.New()), weaver.ClientConfig{})
		fx.must(err)
		_, err = bare.Stats(fx.Context(), ops.StatsRequest{})
		wantError(fx, err, errors.ErrUnsupported, "read statistics: this store", "cannot keep statistics")
	})
}

func TestStatsRefuses(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		now := time.Now()
		for name, c := range map[string]struct {
			req   ops.StatsRequest
			words []string
		}{
			"From after To":       {ops.StatsRequest{From: now, To: now.Add(-time.Hour)}, []string{"From is 2", "To is", "want From before To"}},
			"a negative Step":     {ops.StatsRequest{Step: -1}, []string{"Step is -1ns: want 0"}},
			"a long span":         {ops.StatsRequest{From: now.AddDate(-200, 0, 0)}, []string{"From is 1", "at most 100 years"}},
			"too many steps":      {ops.StatsRequest{From: now.Add(-30 * time.Minute), To: now.Add(48 * time.Hour), Step: 1}, []string{"Step is 10s, of which the span has 17460: want at most 10000"}},
			"an unknown By":       {ops.StatsRequest{By: []store.StatBy{"type", "day"}}, []string{`By[1] is "day": want one of [type queue outcome error_kind worker]`}},
			"By that comes twice": {ops.StatsRequest{By: []store.StatBy{"type", "type"}}, []string{`By[1] is "type", as one before`}},
		} {
			_, err := fx.client.Stats(fx.Context(), c.req)
			wantError(fx, err, weaver.ErrInvalidOption, append(c.words, "read statistics: ")...)
			if fx.Failed() {
				fx.Fatal(name)
			}
		}
		got := fx.stats(ops.StatsRequest{Step: 1<<63 - 1})
		if got.From.After(now.Add(-time.Hour)) {
			fx.Errorf("the longest Step: %+v", got)
		}
	})
}

// Statistics over an hour old have minutes, and over a week old hours. A step consists of whole slots,
// also if rounding From moves it to that age.
func TestStatsRound(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		time.Sleep(time.Until(store.SlotOf(time.Now(), time.Hour).Add(time.Hour + 30*time.Minute)))
		now := time.Now()
		for name, c := range map[string]struct {
			from, step, want time.Duration
		}{
			"an hour":                       {time.Hour, 15 * time.Second, 20 * time.Second},
			"more than an hour":             {61 * time.Minute, 15 * time.Second, time.Minute},
			"whose step begins before that": {59 * time.Minute, 7*time.Minute + 10*time.Second, 8 * time.Minute},
			"a week":                        {7 * 24 * time.Hour, 90 * time.Second, 2 * time.Minute},
			"more than a week":              {8 * 24 * time.Hour, 90 * time.Second, time.Hour},
			"one sum":                       {8 * 24 * time.Hour, 0, 0},
		} {
			got := fx.stats(ops.StatsRequest{From: now.Add(-c.from), Step: c.step})
			equal(fx, name, got.Step, c.want)
			if got.From.After(now.Add(-c.from)) || c.want > 0 && !got.From.Equal(store.SlotOf(now.Add(-c.from), c.want)) {
				fx.Errorf("%s: from %v", name, got.From)
			}
		}
	})
}

// slotStore has statistics of which one read returns a slot, each with a row for every type.
type slotStore struct {
	store.Store
	types int
	reads int
}

func (s *slotStore) ReadStats(_ context.Context, _ string, q store.StatsQuery) (page store.StatsPage, err error) {
	s.reads++
	for i := range s.types {
		r := store.StatRow{StatKey: store.StatKey{Slot: q.From}, Count: 1}
		if q.Step > 0 {
			r.Slot = store.SlotOf(q.From, q.Step)
		}
		if slices.Contains(q.By, store.ByType) {
			r.Type = fmt.Sprint("t", i)
		}
		r.Run.Add(time.Second)
		page.Rows = append(page.Rows, r)
	}
	if page.Next = q.From.Add(store.StatsSlot); !page.Next.Before(q.To) {
		page.Next = time.Time{}
	}
	return page, nil
}

// An answer is read in parts, which are merged, and has an end.
func TestStatsOfManyReads(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		s := &slotStore{Store: fx.store, types: 3}
		client, err := weaver.NewClient(s, weaver.ClientConfig{})
		fx.must(err)
		to := store.SlotOf(time.Now(), store.StatsSlot)
		req := ops.StatsRequest{From: to.Add(-time.Minute), To: to, By: []store.StatBy{store.ByType}}
		for step, want := range map[time.Duration]string{0: "[t0    6 t1    6 t2    6]", 30 * time.Second: "[t0    3 t1    3 t2    3 t0    3 t1    3 t2    3]"} {
			s.reads, req.Step = 0, step
			got, err := client.Stats(fx.Context(), req)
			fx.must(err)
			equal(fx, "reads", s.reads, 6)
			if fmt.Sprint(statTexts(got)) != want || got.Rows[0].Run.P50 < 900*time.Millisecond {
				fx.Errorf("step %v: %v, want %v", step, statTexts(got), want)
			}
		}
		req.Step, s.types = 10*time.Second, 2000
		_, err = client.Stats(fx.Context(), req)
		wantError(fx, err, weaver.ErrInvalidOption, "more than 10000 rows: want a longer Step, fewer fields in By")
		req.From, req.Step, s.types, s.reads = to.Add(-10*time.Minute), 0, 1, 0
		_, err = client.Stats(fx.Context(), req)
		wantError(fx, err, weaver.ErrInvalidOption, "has more than one call reads: want a shorter one, such as to ")
		equal(fx, "reads", s.reads, 20)
	})
}
