package weaver_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

// For any duration: an option is refused, or every store keeps the value to the microsecond and never
// turns a limit into no limit.
func FuzzDurations(f *testing.F) {
	for _, d := range []int64{
		0, -1, 1, 999, 1000, 1001, 1_000_000, int64(time.Second), int64(90 * time.Second), int64(time.Hour), int64(24 * 365 * time.Hour),
		math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2, math.MinInt64, 1 << 53, 9_007_199_254_740_993_000,
	} {
		f.Add(d)
	}
	stores := newFuzzStores(f)
	kinds := map[string]struct {
		option func(time.Duration) weaver.EnqueueOption
		least  time.Duration // minimum that is accepted
		kept   func(weaver.TaskInfo) time.Duration
	}{
		"Timeout":     {func(d time.Duration) weaver.EnqueueOption { return weaver.Timeout(d) }, 0, func(t weaver.TaskInfo) time.Duration { return t.Timeout }},
		"Backoff":     {func(d time.Duration) weaver.EnqueueOption { return weaver.Backoff(d) }, 1, func(t weaver.TaskInfo) time.Duration { return t.Backoff }},
		"BackoffMax":  {func(d time.Duration) weaver.EnqueueOption { return weaver.BackoffMax(d) }, 1, func(t weaver.TaskInfo) time.Duration { return t.BackoffMax }},
		"Delay":       {weaver.Delay, 0, func(t weaver.TaskInfo) time.Duration { return t.ReadyAt.Sub(t.UpdatedAt) }},
		"ExpireAfter": {func(d time.Duration) weaver.EnqueueOption { return weaver.ExpireAfter(d) }, 1, func(t weaver.TaskInfo) time.Duration { return t.DeadlineAt.Sub(t.UpdatedAt) }},
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		d := time.Duration(ns)
		for kind, k := range kinds {
			for name, c := range stores.clients(t) {
				got, err := c.EnqueueTasks(t.Context(), weaver.NewDraft("fuzz.times.any.v1", []byte(`1`), k.option(d)))
				if d < k.least {
					if !errors.Is(err, weaver.ErrInvalidOption) {
						t.Errorf("%s: %s(%v): %v, want an invalid option", name, kind, d, err)
					}
					continue
				}
				if errors.Is(err, weaver.ErrInvalidOption) && d%time.Microsecond != 0 {
					continue // stores have microsecond precision
				}
				if err != nil {
					t.Errorf("%s: %s(%v): %v", name, kind, d, err)
					continue
				}
				info, err := c.Get(t.Context(), got[0].ID)
				if err != nil {
					t.Fatalf("%s: %s(%v): %v", name, kind, d, err)
				}
				kept := k.kept(info)
				// 0 means no limit or the default for some of these.
				lost := kept <= 0 && d > 0 && kind != "Delay" && kind != "ExpireAfter"
				if off := kept - d; off < -time.Microsecond || off > time.Microsecond || lost {
					t.Errorf("%s: %s(%v) is kept as %v", name, kind, d, kept)
				}
			}
		}
	})
}

// For any instant: it is refused, or the task waits for it equally on every store, and a past instant
// means now.
func FuzzAt(f *testing.F) {
	for _, sec := range []int64{
		0, 1, -1, 1_700_000_000, 4_102_444_800, 253_402_300_798, 253_402_300_799, 253_402_300_800, 9_223_372_036_855, 1 << 44, -62_135_596_800,
	} {
		f.Add(sec, int64(0))
		f.Add(sec, int64(999_999_999))
	}
	stores := newFuzzStores(f)
	f.Fuzz(func(t *testing.T, sec, nsec int64) {
		at := time.Unix(sec, nsec%1_000_000_000)
		if at.IsZero() {
			return // no instant was set
		}
		for name, c := range stores.clients(t) {
			before := time.Now().Truncate(time.Microsecond)
			got, err := c.EnqueueTasks(t.Context(), weaver.NewDraft("fuzz.times.any.v1", []byte(`1`), weaver.At(at)))
			if errors.Is(err, weaver.ErrInvalidOption) && (at.Year() > 9999 || at.Year() < 1) {
				continue // JSON cannot represent it
			}
			if err != nil {
				t.Errorf("%s: At(%v): %v", name, at, err)
				continue
			}
			info, err := c.Get(t.Context(), got[0].ID)
			if err != nil {
				t.Fatalf("%s: At(%v): %v", name, at, err)
			}
			if _, err := json.Marshal(info); err != nil {
				t.Errorf("%s: At(%v): the task cannot be printed: %v", name, at, err)
			}
			if at.After(info.UpdatedAt.Add(time.Minute)) {
				if info.State != weaver.StatePending || !info.ReadyAt.Equal(at.Truncate(time.Microsecond)) {
					t.Errorf("%s: At(%v): the task is %s and due at %v", name, at, info.State, info.ReadyAt)
				}
			} else if at.Before(before) && info.State != weaver.StateReady {
				t.Errorf("%s: At(%v): the task is %s and due at %v", name, at, info.State, info.ReadyAt)
			}
		}
	})
}
