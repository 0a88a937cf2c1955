package view

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// If an attempt begins although no event ended the previous one, the line mentions
// a sleep of this process longer than a lease in between, and only such a sleep.
func TestLeaseEndedWhileTheProcessSlept(t *testing.T) {
	t.Parallel()
	const slept = "a: started again: its lease ended while this process slept (42s)"
	for name, tt := range map[string]struct {
		ticks []float64 // times of ticks, in seconds
		ended bool      // the first attempt failed
		want  string
	}{
		"stopped":                     {[]float64{0, 1, 2, 44}, false, slept},
		"stopped, and not yet seen":   {[]float64{0, 1, 2}, false, slept},
		"stopped a while ago":         {[]float64{0, 1, 2, 44, 44.2}, false, slept},
		"it ran":                      {[]float64{0, 10, 20, 30, 40, 44}, false, "a: started again"},
		"nothing is known":            {nil, false, "a: started again"},
		"stopped before the attempt":  {[]float64{-40, 0, 20, 40}, false, "a: started again"},
		"the attempt ended by itself": {[]float64{0, 1, 2, 44}, true, "a: started, attempt 2 of 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := JobOf("a")
			m := newModel(j.Snapshot(), nil, nil)
			head := event.Header{TaskID: j.Task("a").ID, JobID: m.id, Node: "a", AttemptNo: 1, At: At(0.5)}
			m.observe(event.TaskStarted{Header: head})
			for _, at := range tt.ticks {
				m.sleeps.tick(At(at))
			}
			if tt.ended {
				head.At = At(1)
				m.observe(event.TaskRetrying{Header: head, Error: task.Error{Kind: task.KindHandler, Message: "no"}, Delay: time.Second})
			}
			head.AttemptNo, head.At = 2, At(44)
			changes := m.observe(event.TaskStarted{Header: head})
			if len(changes) != 1 {
				t.Fatalf("%d changes", len(changes))
			}
			if got, _ := m.sentence(changes[0], time.UTC, At(44)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
