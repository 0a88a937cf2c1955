package event_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

func TestJobEvents(t *testing.T) {
	t.Parallel()
	h := event.JobHeader{At: time.Unix(1, 0), Namespace: "acme", JobID: task.ID{15: 9}, Name: "n"}
	for want, ev := range map[string]event.Event{
		"job.settled":  event.JobSettled{JobHeader: h},
		"job.started":  event.JobStarted{JobHeader: h},
		"job.blocked":  event.JobBlocked{JobHeader: h},
		"job.finished": event.JobFinished{JobHeader: h},
	} {
		got := ev.Head()
		if ev.Type() != want || got.JobID != h.JobID || got.Namespace != "acme" || !got.At.Equal(h.At) || !got.TaskID.IsZero() {
			t.Errorf("%s: type %s, head %+v", want, ev.Type(), got)
		}
		raw, err := json.Marshal(ev)
		if err != nil || strings.Contains(string(raw), "task_id") || !strings.Contains(string(raw), `"job_id":"`+h.JobID.String()) {
			t.Errorf("%s: %s, %v", want, raw, err)
		}
	}
}
