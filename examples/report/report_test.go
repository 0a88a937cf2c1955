package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/weavertest"
)

// A month in which both zones change their clocks: New York on 2000-04-02, Berlin on 2000-03-26. Each day of each
// zone has one report, at 3 o'clock there.
func TestReport_AcrossClockChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := weavertest.NewConfig(t, config())
		from := time.Date(2000, 3, 14, 12, 0, 0, 0, time.UTC)
		weavertest.Advance(t, e, from.Sub(e.Now()))
		weavertest.Advance(t, e, 31*24*time.Hour)
		for _, want := range []struct {
			schedule, zone string
			utc            map[int]int // reports by hour
		}{
			{"nightly-berlin", "Europe/Berlin", map[int]int{2: 11, 1: 20}},
			{"nightly-new-york", "America/New_York", map[int]int{8: 18, 7: 13}},
		} {
			zone, err := time.LoadLocation(want.zone)
			if err != nil {
				t.Fatal(err)
			}
			fires, err := e.ScheduleFires(t.Context(), want.schedule, time.Time{}, 31)
			if err != nil || len(fires) != 31 {
				t.Fatalf("%s: %d fires: %v", want.schedule, len(fires), err)
			}
			utc := make(map[int]int)
			day := time.Date(2000, 4, 14, 3, 0, 0, 0, zone) // of the latest
			for _, f := range fires {
				if !f.At.Equal(day) || f.Kind != store.FireFired {
					t.Errorf("%s: %s at %s, want one that fired at %s", want.schedule, f.Kind, f.At.In(zone), day)
				}
				about, err := Nightly.Wait(t.Context(), e, f.Task)
				if yesterday := day.AddDate(0, 0, -1).Format(time.DateOnly); err != nil || about != yesterday {
					t.Errorf("%s: the report of %s is about %q, %v", want.schedule, day, about, err)
				}
				utc[f.At.UTC().Hour()]++
				day = day.AddDate(0, 0, -1)
			}
			for hour, n := range want.utc {
				if utc[hour] != n {
					t.Errorf("%s: by hours of UTC %v, want %v", want.schedule, utc, want.utc)
				}
			}
		}
	})
}
