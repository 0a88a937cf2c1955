package sweep_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver"
)

// tenSeconds is a schedule of three times, from 50 to 70 seconds after a run begins: an engine whose declaration failed
// repeats it after 30 seconds. An outage is shorter than a period.
func tenSeconds(name string, opts ...weaver.ScheduleOption) weaver.Schedule {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of bubbles
	opts = append(opts, weaver.Between(begin.Add(41*time.Second), begin.Add(70*time.Second)))
	return weaver.NewSchedule(name, typeA.With(name), weaver.Every(10*time.Second), opts...)
}

// scheduleCases test schedules: each time fires once.
var scheduleCases = []testCase{{
	name:   "schedules",
	onFile: true,
	cfg:    weaver.Config{Program: "sweep", ProgramVersion: 1, Schedules: []weaver.Schedule{tenSeconds("declared", weaver.Overlap(weaver.OverlapAllow))}},
	handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
		at, ok := weaver.ScheduledAt(ctx)
		if !ok || time.Now().Before(at) {
			return "", weaver.Permanent(fmt.Errorf("%s: the run of %v (%v) began at %v", in, at, ok, time.Now()))
		}
		if in == "queue" { // its next time waits
			return in, rest(ctx, 12*time.Second)
		}
		return in, nil
	}),
	run: func(fx *fixture) {
		_, err := fx.client.PutSchedule(fx.ctx, tenSeconds("put", weaver.Overlap(weaver.OverlapAllow)))
		fx.must(err)
		_, err = fx.client.PutSchedule(fx.ctx, tenSeconds("queue", weaver.Overlap(weaver.OverlapQueue)))
		fx.must(err)
		sleep(fx.ctx, 130*time.Second)
		want := []string{"00:50 fired 1", "01:00 fired 1", "01:10 fired 1"}
		for _, name := range []string{"declared", "put", "queue"} {
			fires, err := fx.client.ScheduleFires(fx.ctx, name, time.Time{}, 0)
			fx.must(err)
			var got []string
			for _, f := range slices.Backward(fires) {
				got = append(got, fmt.Sprintf("%s %s %d", f.At.Format("04:05"), f.Kind, f.Count))
			}
			if !slices.Equal(got, want) {
				fx.errorf("the times of %s are %v, want %v", name, got, want)
			}
			runs, _, err := fx.client.List(fx.ctx, weaver.Filter{Labels: map[string]string{"weaver.schedule": name}})
			fx.must(err)
			done := slices.DeleteFunc(runs, func(t weaver.TaskInfo) bool { return t.State != weaver.StateSucceeded })
			if len(done) != len(want) {
				fx.errorf("%d runs of %s have succeeded, want %d", len(done), name, len(want))
			}
		}
	},
}}
