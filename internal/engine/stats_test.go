package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// statStore is a store whose writes of statistics can be refused.
type statStore struct {
	*fixture
	mu     sync.Mutex
	refuse bool
	lost   bool // loses the answer: the write happens
	writes int
	most   int // rows of the largest write
}

func (s *statStore) WriteStats(ctx context.Context, ns string, rows ...store.StatRow) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.most = max(s.most, len(rows))
	if s.refuse && !s.lost {
		return errors.New("refused")
	}
	err := s.Store.WriteStats(ctx, ns, rows...)
	if s.refuse {
		return store.ErrUnknown
	}
	return err
}

func (s *statStore) set(refuse, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse, s.lost = refuse, lost
}

// sum returns the number of attempts counted by the store, by outcome and kind.
func (s *statStore) sum() map[string]int64 {
	s.Helper()
	page, err := s.ReadStats(s.Context(), testNS, store.StatsQuery{
		From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), By: []store.StatBy{store.ByOutcome, store.ByErrorKind},
	})
	if err != nil {
		s.Fatal(err)
	}
	sum := make(map[string]int64)
	for _, r := range page.Rows {
		sum[string(r.Outcome)+" "+string(r.ErrorKind)] = r.Count
	}
	return sum
}

func (s *statStore) wants(when string, want map[string]int64) {
	s.Helper()
	if got := s.sum(); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("%s %v are counted, want %v", when, got, want)
	}
}

func TestStatsAreWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		s := &statStore{fixture: f}
		cfg := f.config(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			time.Sleep(time.Second)
			if a, _ := From(ctx); a.Task().Labels["fails"] != "" {
				return nil, errors.New("no")
			}
			return json.RawMessage("1"), nil
		})
		cfg.Store = s
		e := New(cfg)
		stop := f.start(e)
		f.enqueue(3)
		f.enqueue(2, func(n *task.New) { n.Labels = map[string]string{"fails": "y"} })
		time.Sleep(8 * time.Second)
		all := map[string]int64{"success ": 3, "failure handler_error": 2}
		s.wants("8 s later", all)
		writes := s.writes
		time.Sleep(time.Minute)
		if s.writes != writes {
			t.Errorf("an idle engine wrote %d times", s.writes-writes)
		}

		page, err := s.ReadStats(f.Context(), testNS, store.StatsQuery{From: time.Now().Add(-time.Hour), To: time.Now(), Step: store.StatsSlot, By: []store.StatBy{store.ByType, store.ByQueue, store.ByWorker}})
		if err != nil || len(page.Rows) != 1 {
			t.Fatalf("ReadStats: %+v, %v", page.Rows, err)
		}
		r := page.Rows[0]
		if r.Type != testType || r.Queue != task.DefaultQueue || r.Worker != e.worker || (r.Run.Quantile(0.5)-time.Second).Abs() > time.Second/8 {
			t.Errorf("%+v ran for %v, want a second", r.StatKey, r.Run.Quantile(0.5))
		}

		// Attempts counted while the store refuses, or loses the answer, are counted once.
		for _, lost := range []bool{false, true} {
			s.set(true, lost)
			f.enqueue(1)
			time.Sleep(30 * time.Second)
			if !lost {
				s.wants("while writes are refused", all)
			}
			f.enqueue(1)
			time.Sleep(20 * time.Second)
			s.set(false, false)
			time.Sleep(6 * time.Second)
			all["success "] += 2
			s.wants(fmt.Sprint("after an outage, answers lost ", lost), all)
		}

		// A drain writes the counts, and a second Run in the same slot adds to them.
		for range 2 {
			f.enqueue(1)
			time.Sleep(1100 * time.Millisecond)
			stop()
			all["success "]++
			s.wants("after a drain", all)
			stop = f.start(e)
		}
		stop()
	})
}

// A store without statistics gets no calls for them.
func TestNoStats(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		cfg.Store = bare{f}
		e := New(cfg)
		stop := f.start(e)
		ids := f.enqueue(1)
		time.Sleep(20 * time.Second)
		if e.stats != nil || f.state(ids[0]) != task.Succeeded {
			t.Errorf("it counts %v; the task is %s", e.stats, f.state(ids[0]))
		}
		stop()
	})
}

// An attempt whose lease was taken away is counted by the worker that took it.
func TestStatsOfLostLeases(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		s := &statStore{fixture: f}
		dead := f.env(true)
		f.lease(dead)
		f.Kill(dead.worker)
		cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		cfg.Store = s
		stop := f.start(New(cfg))
		time.Sleep(2 * testTTL)
		stop()
		s.wants("after the worker's death", map[string]int64{"lease_lost lease_expired": 1, "success ": 1})
	})
}

// Counts are limited by keys, and by slots that cannot be written.
func TestStatsAreBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		s := &statStore{fixture: f}
		e := f.env(true)
		e.Store = s
		e.stats = newStats(s, testNS, e.worker)
		w := newStatWriter(e)
		const many = 10 * statsKeys
		for i := range many {
			e.stats.count(&Attempt{task: task.Task{ID: f.ids.New(), Type: testType, Queue: fmt.Sprint("q", i)}}, &store.Finish{Outcome: task.OutcomeSuccess})
		}
		w.flush(f.Context())
		s.wants("of many queues", map[string]int64{"success ": many})
		page, err := s.ReadStats(f.Context(), testNS, store.StatsQuery{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), By: []store.StatBy{store.ByQueue}})
		if err != nil || len(page.Rows) > statsKeys+1 || len(page.Rows) < statsKeys {
			t.Errorf("%d queues are counted one by one, %v; want at most %d", len(page.Rows), err, statsKeys)
		}
		if s.most > store.MaxStatsWrite {
			t.Errorf("%d rows in one write", s.most)
		}

		s.set(true, false)
		for range 3 * statsSlots {
			time.Sleep(store.StatsSlot)
			e.stats.count(&Attempt{task: task.Task{ID: f.ids.New(), Type: testType}}, &store.Finish{Outcome: task.OutcomeCancelled})
			w.flush(f.Context())
		}
		if n := len(e.stats.slots); n != statsSlots {
			t.Errorf("%d slots are kept, want %d", n, statsSlots)
		}
		s.set(false, false)
		w.flush(f.Context())
		s.wants("after a long outage", map[string]int64{"success ": many, "cancelled ": statsSlots})
		if n := len(e.stats.slots); n != 1 {
			t.Errorf("%d slots are kept when all are written", n)
		}
	})
}

// The collector merges old statistics every 10 minutes.
func TestCollectorMergesStats(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		e.stats = newStats(f.Store, testNS, e.worker)
		e.Values = &Values{}
		slot := store.SlotOf(time.Now(), store.StatsSlot)
		if err := f.WriteStats(f.Context(), testNS, store.StatRow{StatKey: store.StatKey{Slot: slot, Worker: "w"}, Count: 1}); err != nil {
			t.Fatal(err)
		}
		stop := f.background(newCollector(e).run)
		workers := func() (n int) {
			page, err := f.ReadStats(f.Context(), testNS, store.StatsQuery{From: slot, To: slot.Add(time.Minute), By: []store.StatBy{store.ByWorker}})
			if err != nil || len(page.Rows) != 1 {
				t.Fatalf("ReadStats: %+v, %v", page, err)
			}
			if page.Rows[0].Worker != "" {
				n++
			}
			return n
		}
		time.Sleep(50 * time.Minute)
		if workers() != 1 {
			t.Error("statistics of the last hour are merged")
		}
		time.Sleep(30 * time.Minute)
		if workers() != 0 {
			t.Error("statistics of more than an hour ago are not merged")
		}
		stop()
	})
}
