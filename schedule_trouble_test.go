package weaver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// The worker is down while clocks change, and the time that the change moves fires once.
func TestSchedule_DownWhileClocksChange(t *testing.T) {
	for name, c := range map[string]struct{ down, up, want string }{
		// In March 02:30 is left out: its instant is 03:00, 01:00 UTC.
		"forward": {"2000-03-25T12:00:00Z", "2000-03-26T02:00:00Z", "26 01:00:00"},
		// In October 02:30 comes twice: its instant is the first one, 00:30 UTC, also when the second one is near.
		"back": {"2000-10-28T12:00:00Z", "2000-10-29T01:15:00Z", "29 00:30:00"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newTicking(t)
				until := func(text string) {
					at, err := time.Parse(time.RFC3339, text)
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Until(at))
				}
				k.start()
				until(c.down)
				k.stop()
				k.put(weaver.NewSchedule("nightly", tickType.With("x"), weaver.Cron("30 2 * * *", "Europe/Berlin"), weaver.CatchUp(2*time.Hour)))
				until(c.up)
				k.start()
				time.Sleep(12 * time.Hour)
				k.want("runs", k.ran(), c.want)
				k.want("records", k.fires("nightly"), c.want[3:]+" fired")
			})
		})
	}
}

// The record of a time decides what has fired, and not its run, which a retention rule may have removed.
func TestSchedule_BackfillAfterPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		k := newTicking(t)
		k.start()
		put := k.put(weaver.NewSchedule("s", tickType.With("x"), weaver.Every(time.Hour)))
		time.Sleep(3*time.Hour + time.Minute)
		ack, err := k.client.DeleteMany(ctx, weaver.Filter{})
		if err != nil || ack.Done != 3 {
			t.Fatalf("delete the runs: %+v, %v", ack, err)
		}
		got, err := k.client.BackfillSchedule(ctx, "s", put.CreatedAt.Add(time.Second), put.CreatedAt.Add(3*time.Hour+time.Second))
		if err != nil || got.Times != 3 || got.Fired != 0 {
			t.Errorf("backfill: %+v, %v", got, err)
		}
		time.Sleep(time.Minute)
		k.want("runs", k.ran(), "01 01:00:00", "01 02:00:00", "01 03:00:00")
	})
}

func TestSchedule_BackfillIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTicking(t)
		put := k.put(weaver.NewSchedule("s", tickType.With("x"), weaver.Cron("* * * * *", "")))
		_, err := k.client.BackfillSchedule(t.Context(), "s", put.CreatedAt.AddDate(-10, 0, 0), put.CreatedAt)
		if !errors.Is(err, weaver.ErrInvalidOption) || !strings.Contains(err.Error(), "5258880 scheduled times") {
			t.Errorf("ten years of minutes: %v", err)
		}
	})
}

// A definition that has changed since it was seen is not overwritten.
func TestPutSchedule_SeenVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		k := newTicking(t)
		every := func(d time.Duration) weaver.Schedule {
			return weaver.NewSchedule("s", tickType.With("x"), weaver.Every(d))
		}
		for _, step := range []struct {
			every time.Duration
			seen  int
			want  error
		}{{time.Hour, 1, store.ErrChanged}, {time.Hour, 0, nil}, {time.Hour, 0, store.ErrChanged}, {time.Minute, 1, nil}, {time.Hour, 1, store.ErrChanged}, {time.Hour, 2, nil}} {
			if _, err := k.client.PutSchedule(ctx, every(step.every), weaver.SeenVersion(step.seen)); !errors.Is(err, step.want) {
				t.Errorf("every %s, version %d seen: %v, want %v", step.every, step.seen, err, step.want)
			}
		}
		if info := k.info("s"); info.Version != 3 || info.Every != "1h" {
			t.Errorf("the schedule is %+v", info)
		}
	})
}

// A trigger at the very instant of a scheduled time, or of another trigger, takes no time from the schedule, and one
// within the second of a skipped time leaves that to a backfill.
func TestSchedule_TriggerBesideATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		k := newTicking(t)
		put := k.put(weaver.NewSchedule("s", tickType.With("x"), weaver.Every(time.Hour), weaver.Overlap(weaver.OverlapAllow)))
		trigger := func() {
			t.Helper()
			if _, err := k.client.TriggerSchedule(ctx, "s"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		trigger() // 01:00, before an engine fires it
		trigger()
		time.Sleep(time.Hour + time.Millisecond)
		trigger() // 02:00 and a millisecond
		time.Sleep(time.Hour)
		k.start()
		time.Sleep(time.Second)
		if got, err := k.client.BackfillSchedule(ctx, "s", put.CreatedAt.Add(time.Second), put.CreatedAt.Add(3*time.Hour)); err != nil || got.Fired != 2 {
			t.Errorf("backfill of 01:00 and 02:00: %+v, %v", got, err)
		}
		for _, f := range k.fires("s") {
			if strings.Contains(f, "skipped") {
				t.Errorf("a time that has fired is on record as %s", f)
			}
		}
		time.Sleep(time.Second)
		k.want("runs", k.ran(), "01 00:59:59", "01 00:59:59", "01 01:00:00", "01 02:00:00", "01 02:00:00", "01 03:00:00")
	})
}
