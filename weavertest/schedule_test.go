package weavertest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

// A year of a daily schedule, in a zone that changes its clocks: of the bubble, 2000.
func TestAdvance_FiresSchedules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		daily := weaver.Define[weaver.None, weaver.None]("acme.report.daily.v1")
		hours := make(map[int]int) // of the fires, in UTC
		handler := daily.Handler(func(ctx context.Context, _ weaver.None) (weaver.None, error) {
			at, ok := weaver.ScheduledAt(ctx)
			if !ok || !at.Equal(time.Now()) {
				t.Errorf("the run of %v (%v) began at %v", at, ok, time.Now())
			}
			hours[at.Hour()]++
			return weaver.None{}, nil
		})
		e := weavertest.NewConfig(t, weaver.Config{
			Handlers:  []weaver.Handler{handler},
			Schedules: []weaver.Schedule{weaver.NewSchedule("daily", daily.With(weaver.None{}), weaver.Cron("30 2 * * *", "Europe/Berlin"))},
		})
		weavertest.Advance(t, e, time.Hour+30*time.Minute) // the very instant of the first fire
		if hours[1] != 1 {
			t.Errorf("at the time of the first fire the fires are %v", hours)
		}
		weavertest.Advance(t, e, 366*24*time.Hour)
		// 00:30 UTC from March 27 to October 29; in March the time that is left out is made up for at 01:00.
		if hours[0] != 217 || hours[1] != 150 {
			t.Errorf("in a year the hours of the fires are %v", hours)
		}
		put, err := e.PutSchedule(t.Context(), weaver.NewSchedule("more", daily.With(weaver.None{}), weaver.Every(time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		weavertest.Advance(t, e, put.Next.Sub(e.Now())-time.Second)
		if info, err := e.Schedule(t.Context(), "more"); err != nil || info.Last != nil {
			t.Errorf("before its time: %+v, %v", info.Last, err)
		}
		weavertest.Advance(t, e, time.Second)
		if info, err := e.Schedule(t.Context(), "more"); err != nil || info.Last == nil || info.Last.State != "succeeded" {
			t.Errorf("at its time: %+v, %v", info.Last, err)
		}
	})
}
