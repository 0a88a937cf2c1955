package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

func head(node string) event.Header {
	return event.Header{
		At: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Namespace: "default", TaskID: task.ID{15: 1},
		TaskType: "acme.demo.ok.v1", JobID: task.ID{15: 9}, Node: node, AttemptNo: 1,
	}
}

// object parses a line and checks its form.
func object(t *testing.T, line string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Errorf("%v: %s", err, line)
	}
	if !strings.HasPrefix(line, `{"event":"`) || !strings.HasSuffix(line, "}") || strings.Contains(line, "\n") {
		t.Errorf("the line does not begin with its event: %s", line)
	}
	return o
}

func TestPartialLeavesOutWhatIsZero(t *testing.T) {
	t.Parallel()
	h := event.Header{Namespace: "default", AttemptNo: 2}
	for _, tc := range []struct {
		ev   event.Event
		want string
	}{
		{event.TaskFailed{Header: h}, `{"event":"task.failed","namespace":"default","attempt_no":2}`},
		{event.TaskFailed{Header: h, Error: task.Error{Kind: task.KindPanic, Message: "<b>"}}, `{"event":"task.failed","namespace":"default","attempt_no":2,"error":{"kind":"panic","message":"<b>"}}`},
		{event.TaskSuspended{Header: h, Waiting: task.WaitDeps}, `{"event":"task.suspended","namespace":"default","attempt_no":2,"waiting_reason":"deps"}`},
		{event.Progress{Header: h}, `{"event":"progress","namespace":"default","attempt_no":2}`},
		{event.JobSettled{JobHeader: event.JobHeader{Namespace: "default"}, State: task.JobFailed}, `{"event":"job.settled","namespace":"default","state":"failed"}`},
		{event.StreamChunk{Header: h, Data: math.Inf(1)}, `{"event":"stream.chunk","namespace":"default","attempt_no":2,"data":"+Inf"}`},
	} {
		if got := event.Partial(tc.ev); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
		object(t, event.Partial(tc.ev))
	}
}

func TestEncodeEveryEvent(t *testing.T) {
	t.Parallel()
	h := head("a")
	numbered := h
	numbered.Sequence = event.Sequence(1, 3)
	jh := event.JobHeader{At: h.At, Namespace: "default", JobID: h.JobID, Name: "n"}
	e := task.Error{Kind: task.KindPanic, Message: "<b>", Step: "s"}
	const (
		task1 = `"timestamp":"2000-01-01T00:00:00Z","namespace":"default","task_id":"00000000000000000000000001","task_type":"acme.demo.ok.v1","job_id":"00000000000000000000000009","node":"a","attempt_no":1`
		job1  = `"timestamp":"2000-01-01T00:00:00Z","namespace":"default","job_id":"00000000000000000000000009","name":"n"`
		fail  = `"error":{"kind":"panic","message":"<b>","step":"s"}`
	)
	for _, tc := range []struct {
		ev   event.Event
		want string
	}{
		{event.TaskStarted{Header: h, Input: json.RawMessage(`[1, 2]`)}, `{"event":"task.started",` + task1 + `,"input":[1,2]}`},
		{event.TaskReopened{Header: h}, `{"event":"task.reopened",` + task1 + `}`},
		{event.TaskSucceeded{Header: h, Output: json.RawMessage(`{}`), Duration: 1}, `{"event":"task.succeeded",` + task1 + `,"output":{},"duration_ns":1}`},
		{event.TaskFailed{Header: h, Error: e}, `{"event":"task.failed",` + task1 + `,` + fail + `,"duration_ns":0}`},
		{event.TaskRetrying{Header: h, Error: e, Delay: 2}, `{"event":"task.retrying",` + task1 + `,` + fail + `,"delay_ns":2,"duration_ns":0}`},
		{event.TaskSuspended{Header: h, WakeAt: h.At}, `{"event":"task.suspended",` + task1 + `,"wake_at":"2000-01-01T00:00:00Z","duration_ns":0}`},
		{event.TaskBlocked{Header: h, Error: e}, `{"event":"task.blocked",` + task1 + `,` + fail + `,"duration_ns":0}`},
		{event.TaskCancelled{Header: h, Error: e}, `{"event":"task.cancelled",` + task1 + `,` + fail + `,"duration_ns":0}`},
		{event.StepStarted{Header: h, Step: "s", Try: 1}, `{"event":"step.started",` + task1 + `,"step":"s","index":0,"try":1}`},
		{event.StepCompleted{Header: h, Step: "s", Output: json.RawMessage(`3`)}, `{"event":"step.completed",` + task1 + `,"step":"s","index":0,"output":3,"duration_ns":0}`},
		{event.StepFailed{Header: h, Step: "s", Try: 1, Error: e}, `{"event":"step.failed",` + task1 + `,"step":"s","index":0,"try":1,` + fail + `,"duration_ns":0}`},
		{event.Progress{Header: h, Progress: task.Progress{Current: 1.5}}, `{"event":"progress",` + task1 + `,"current":1.5}`},
		{event.StreamChunk{Header: h, Stream: "rows", Data: []int{1, 2}}, `{"event":"stream.chunk",` + task1 + `,"stream":"rows","data":[1,2]}`},
		{event.StreamChunk{Header: h, Stream: "rows"}, `{"event":"stream.chunk",` + task1 + `,"stream":"rows","data":null}`},
		{event.StreamChunk{Header: h, Stream: "stdout", Data: ""}, `{"event":"stream.chunk",` + task1 + `,"stream":"stdout","data":""}`},
		{event.LogWritten{Header: h, Level: slog.LevelWarn, Message: "m", Data: map[string]any{
			"n": 3, "err": errors.New("no"), "took": time.Second, "f": math.NaN(), "v": slog.StringValue("x"), "nil": nil, "nested": map[string]any{"a": true}, "id": h.TaskID,
		}}, `{"event":"log.written",` + task1 + `,"level":"WARN","message":"m","data":{"err":"no","f":"NaN","id":"00000000000000000000000001","n":3,"nested":{"a":true},"nil":null,"took":"1s","v":"x"}}`},
		{event.TaskReleased{Header: numbered, Duration: 1}, `{"event":"task.released",` + task1 + `,"sequence":16777219,"duration_ns":1}`},
		{event.TaskLeaseLost{Header: numbered, State: task.Ready, Crash: true}, `{"event":"task.lease_lost",` + task1 + `,"sequence":16777219,"state":"ready","crash":true}`},
		{event.JobSettled{JobHeader: jh, State: task.JobFailed, Counters: task.JobCounters{Total: 2, Failed: 1}}, `{"event":"job.settled",` + job1 + `,"state":"failed","counters":{"total":2,"unfinished":0,"movable":0,"failed":1,"allowed":0,"succeeded":0},"duration_ns":0}`},
		{event.JobStarted{JobHeader: jh, Tasks: 2}, `{"event":"job.started",` + job1 + `,"tasks":2,"resumed":false}`},
		{event.JobBlocked{JobHeader: jh, Blocked: []string{"a"}}, `{"event":"job.blocked",` + job1 + `,"blocked":["a"]}`},
		{event.JobFinished{JobHeader: jh, State: task.JobFailed}, `{"event":"job.finished",` + job1 + `,"state":"failed","duration_ns":0,"tasks":null,"critical_path":null,"critical_path_duration_ns":0}`},
	} {
		var enc event.Encoder
		lines := enc.Lines(tc.ev)
		if len(lines) != 1 || lines[0] != tc.want {
			t.Errorf("got  %s\nwant %s", strings.Join(lines, "\n"), tc.want)
			continue
		}
		object(t, lines[0])
		if again := enc.Lines(event.Plain(tc.ev)); again[0] != tc.want {
			t.Errorf("after Plain: got %s\nwant %s", again[0], tc.want)
		}
	}
}

// Values that cannot be encoded are written as text.
func TestEncodeOddValues(t *testing.T) {
	t.Parallel()
	var enc event.Encoder
	o := object(t, enc.Lines(event.TaskSucceeded{Header: head("a"), Output: json.RawMessage(`broken`)})[0])
	if !strings.Contains(fmt.Sprint(o["encode_error"]), "invalid character") || o["node"] != "a" || o["event"] != "task.succeeded" {
		t.Errorf("an event that cannot be encoded: %v", o)
	}
	o = object(t, enc.Lines(event.StreamChunk{Header: head("a"), Stream: "rows", Data: make(chan int)})[0])
	if text, ok := o["data"].(string); !ok || !strings.HasPrefix(text, "0x") {
		t.Errorf("data that cannot be encoded: %v", o)
	}
}

// once counts its encodings.
type once struct{ times *int }

func (o once) MarshalJSON() ([]byte, error) {
	*o.times++
	return []byte(`{"a":1}`), nil
}

// Plain runs all handler code and leaves its argument unchanged.
func TestPlain(t *testing.T) {
	t.Parallel()
	times := 0
	for _, ev := range []event.Event{
		event.StreamChunk{Header: head("a"), Stream: "rows", Data: once{&times}},
		event.LogWritten{Header: head("a"), Data: map[string]any{"v": once{&times}}},
	} {
		times = 0
		plain := event.Plain(ev)
		var enc event.Encoder
		line := enc.Lines(plain)[0]
		if times != 1 || !strings.Contains(line, `{"a":1}`) {
			t.Errorf("%s: encoded %d times: %s", ev.Type(), times, line)
		}
		if l, ok := ev.(event.LogWritten); ok && l.Data["v"] != (once{&times}) {
			t.Errorf("Plain changed the event that it was given: %v", l.Data)
		}
	}
}

// A block of output may end inside a character, a JSON string cannot.
func TestEncodeKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	const text = "日本\xff語e\u0301😀é\xe6"
	for size := 1; size <= len(text); size++ {
		var enc event.Encoder
		var lines []string
		for i := 0; i < len(text); i += size {
			lines = append(lines, enc.Lines(event.StreamChunk{Header: head("a"), Stream: "stdout", Data: text[i:min(i+size, len(text))]})...)
			lines = append(lines, enc.Lines(event.StreamChunk{Header: head("a"), Stream: "stderr", Data: "é"})...)
		}
		lines = append(lines, enc.Lines(event.TaskSucceeded{Header: head("a")})...)
		got := ""
		for _, line := range lines {
			if o := object(t, line); o["event"] == "stream.chunk" && o["stream"] == "stdout" {
				got += o["data"].(string)
			}
		}
		if want := "日本\ufffd語e\u0301😀é\ufffd"; got != want {
			t.Errorf("in blocks of %d: %q, want %q", size, got, want)
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, "task.succeeded") {
			t.Errorf("in blocks of %d: the last event is %s", size, last)
		}
	}
}
