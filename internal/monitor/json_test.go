package monitor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/monitor"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// objects parses a JSON stream line by line.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if !strings.HasPrefix(line, `{"event":"`) || !strings.HasSuffix(line, "}\n") {
			t.Errorf("the line does not begin with its event: %s", line)
		}
		all = append(all, o)
	}
	return all
}

func TestJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := monitor.JobOf("fetch", "clean < fetch")
		var out output
		m, end := running(t, monitor.Config{Out: &out, Format: monitor.JSON, Color: true, Namespace: "acme"}, j)
		m.Note("for people")
		m.Emit(j.Starts("fetch", time.Now()))
		m.Emit(j.Prints("fetch", "<b>\x1b[1m\n"))
		m.Logger().Error("oh", "task_id", j.Task("fetch").ID, "error", errors.New("no"), slog.Group("at", "line", 3))
		time.Sleep(time.Second)
		m.Emit(j.Retries("fetch", "exit status 3", time.Second, time.Now()))
		time.Sleep(time.Second)
		j.Starts("fetch", time.Now()) // elsewhere
		time.Sleep(time.Second)
		m.Reconcile(j.Picture())
		j.Fails("fetch", "exit status 4", time.Now())
		end()
		m.Reconcile(j.Picture())
		j.State, j.FinishedAt = task.JobFailed, time.Now()
		if err := m.Summary(j.Picture()); err != nil {
			t.Error(err)
		}
		m.Logger().Error("too late")
		m.Emit(j.Prints("fetch", "too late"))
		id, task1 := j.ID.String(), fmt.Sprintf(`"namespace":"default","task_id":"%s","task_type":"weaver.exec.run.v1","job_id":"%s","node":"fetch"`, j.Tasks[0].ID, j.ID)
		task2 := strings.NewReplacer(j.Tasks[0].ID.String(), j.Tasks[1].ID.String(), "fetch", "clean").Replace(task1)
		wantText(t, out.String(), `
{"event":"job.started","timestamp":"2000-01-01T00:00:00Z","namespace":"acme","job_id":"`+id+`","name":"nightly-report","tasks":2,"resumed":false}
{"event":"task.started","timestamp":"2000-01-01T00:00:00Z",`+task1+`,"attempt_no":1}
{"event":"stream.chunk","timestamp":"2000-01-01T00:00:00Z",`+task1+`,"attempt_no":1,"stream":"stdout","data":"<b>\u001b[1m\n"}
{"event":"log","timestamp":"2000-01-01T00:00:00Z","level":"ERROR","message":"oh","data":{"at.line":3,"error":"no","task_id":"`+j.Tasks[0].ID.String()+`"}}
{"event":"task.retrying","timestamp":"2000-01-01T00:00:01Z",`+task1+`,"attempt_no":1,"error":{"kind":"handler_error","message":"exit status 3"},"delay_ns":1000000000,"duration_ns":1000000000}
{"event":"task.started","timestamp":"2000-01-01T00:00:02Z",`+task1+`,"attempt_no":2}
{"event":"task.failed","timestamp":"2000-01-01T00:00:03Z",`+task1+`,"attempt_no":2,"error":{"kind":"handler_error","message":"exit status 4"},"duration_ns":1000000000}
{"event":"task.cancelled","timestamp":"2000-01-01T00:00:03Z",`+task2+`,"error":{"kind":"dependency_failed","message":"needs task fetch, which failed"},"duration_ns":0}
{"event":"job.finished","timestamp":"2000-01-01T00:00:03Z","namespace":"default","job_id":"`+id+`","name":"nightly-report","state":"failed","duration_ns":3000000000,"tasks":[{"name":"fetch","id":"`+j.Tasks[0].ID.String()+`","state":"failed","attempts":2,"duration_ns":1000000000,"error":{"kind":"handler_error","message":"exit status 4"}},{"name":"clean","id":"`+j.Tasks[1].ID.String()+`","state":"cancelled","attempts":0,"duration_ns":0,"error":{"kind":"dependency_failed","message":"needs task fetch, which failed"}}],"critical_path":["fetch"],"critical_path_duration_ns":1000000000}
`)
		objects(t, out.String())
	})
}

func TestJSONOfEveryEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := monitor.JobOf("a")
		var out output
		m, end := running(t, monitor.Config{Out: &out, Format: monitor.JSON}, j)
		m.Emit(j.Starts("a", time.Now()))
		h := j.Head("a", time.Now())
		for _, ev := range []event.Event{
			event.StepStarted{Header: h, Step: "s"},
			event.StepFailed{Header: h, Step: "s", Try: 1, Error: task.Error{Kind: task.KindPanic}},
			event.StepCompleted{Header: h, Step: "s", Output: json.RawMessage(`{"a":[1,2]}`)},
			event.Progress{Header: h, Progress: task.Progress{Current: 1.5}},
			event.StreamChunk{Header: h, Stream: "rows", Data: []int{1, 2}},
			event.StreamChunk{Header: h, Stream: "rows", Data: nil},
			event.StreamChunk{Header: h, Stream: "rows", Data: make(chan int)},
			event.StreamChunk{Header: h, Stream: "stdout", Data: ""},
			event.LogWritten{Header: h, Level: slog.LevelWarn, Message: "m", Data: map[string]any{
				"n": 3, "err": errors.New("no"), "took": time.Second, "f": math.NaN(), "v": slog.StringValue("x"), "nil": nil, "nested": map[string]any{"a": true},
			}},
			event.TaskSucceeded{Header: h, Output: json.RawMessage(`broken`)},
		} {
			m.Emit(ev)
		}
		end()
		all := objects(t, out.String())
		var types []string
		for _, o := range all {
			types = append(types, o["event"].(string))
			if o["event"] == "log.written" {
				if got := fmt.Sprint(o["data"]); got != "map[err:no f:NaN n:3 nested:map[a:true] nil:<nil> took:1s v:x]" {
					t.Errorf("the log's data: %s", got)
				}
			}
		}
		want := "job.started task.started step.started step.failed step.completed progress stream.chunk stream.chunk stream.chunk stream.chunk log.written task.succeeded"
		if got := strings.Join(types, " "); got != want {
			t.Errorf("events:\n%s, want\n%s", got, want)
		}
		if last := all[len(all)-1]; !strings.Contains(fmt.Sprint(last["encode_error"]), "invalid character") || last["node"] != "a" {
			t.Errorf("an event that cannot be encoded: %v", last)
		}
		if got := fmt.Sprint(all[6]["data"], all[5]["current"]); got != "[1 2] 1.5" {
			t.Errorf("data and current: %s", got)
		}
	})
}

// A block of output may end inside a character, a JSON string cannot.
func TestJSONKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	const text = "日本\xff語e\u0301😀é\xe6"
	for size := 1; size <= len(text); size++ {
		synctest.Test(t, func(t *testing.T) {
			j := monitor.JobOf("a")
			var out output
			m, end := running(t, monitor.Config{Out: &out, Format: monitor.JSON}, j)
			m.Emit(j.Starts("a", time.Now()))
			for i := 0; i < len(text); i += size {
				m.Emit(j.Prints("a", text[i:min(i+size, len(text))]))
				m.Emit(event.StreamChunk{Header: j.Head("a", time.Now()), Stream: "stderr", Data: "é"})
			}
			m.Emit(j.Succeeds("a", time.Now()))
			end()
			got := ""
			all := objects(t, out.String())
			for _, o := range all {
				if o["event"] == "stream.chunk" && o["stream"] == "stdout" {
					got += o["data"].(string)
				}
			}
			if want := "日本\ufffd語e\u0301😀é\ufffd"; got != want {
				t.Errorf("in blocks of %d: %q, want %q", size, got, want)
			}
			if last := all[len(all)-1]["event"]; last != "task.succeeded" {
				t.Errorf("in blocks of %d: the last event is %s", size, last)
			}
		})
	}
}

func TestJobEvents(t *testing.T) {
	t.Parallel()
	h := event.JobHeader{At: monitor.Start, Namespace: "acme", JobID: monitor.ID(0), Name: "n"}
	for want, ev := range map[string]event.Event{
		"job.started":  event.JobStarted{JobHeader: h},
		"job.blocked":  event.JobBlocked{JobHeader: h},
		"job.finished": event.JobFinished{JobHeader: h},
	} {
		head := ev.Head()
		if ev.Type() != want || head.JobID != h.JobID || head.Namespace != "acme" || !head.At.Equal(h.At) || !head.TaskID.IsZero() {
			t.Errorf("%s: type %s, head %+v", want, ev.Type(), head)
		}
		raw, err := json.Marshal(ev)
		if err != nil || strings.Contains(string(raw), "task_id") || !strings.Contains(string(raw), `"job_id":"`+h.JobID.String()) {
			t.Errorf("%s: %s, %v", want, raw, err)
		}
	}
}
