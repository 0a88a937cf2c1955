package event_test

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

func TestBody(t *testing.T) {
	t.Parallel()
	h := head("a")
	for _, make := range []func(event.Header) event.Event{
		func(h event.Header) event.Event { return event.StepStarted{Header: h, Step: "s", Index: 1, Try: 2} },
		func(h event.Header) event.Event {
			return event.StepCompleted{Header: h, Step: "s", Duration: time.Second}
		},
		func(h event.Header) event.Event {
			return event.StepFailed{Header: h, Step: "s", Try: 1, Error: task.Error{Kind: task.KindHandler, Message: "no"}}
		},
		func(h event.Header) event.Event {
			return event.Progress{Header: h, Progress: task.Progress{Current: 1, Total: 2, Message: "m"}}
		},
		func(h event.Header) event.Event { return event.StreamChunk{Header: h, Stream: "tokens", Data: "x"} },
		func(h event.Header) event.Event {
			return event.LogWritten{Header: h, Step: "s", Level: slog.LevelWarn, Message: "m", Data: map[string]any{"a": "b", "n": 1.5, "id": json.Number("9007199254740993")}}
		},
		func(h event.Header) event.Event {
			return event.StreamChunk{Header: h, Data: []any{2.0, json.Number("18446744073709551615")}}
		},
	} {
		typ, body, err := event.Body(make)
		if err != nil {
			t.Fatal(err)
		}
		got, err := event.Decode(typ, h, body)
		if want := make(h); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", body, got, err, want)
		}
		if strings.Contains(string(body), "task_id") {
			t.Errorf("%s has a header", body)
		}
	}
	if _, err := event.Decode("task.moved", h, nil); err == nil || !strings.Contains(err.Error(), "task.moved") {
		t.Errorf("an unknown type: %v", err)
	}
}

func TestBodyIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x01é", 60_000)
	for _, make := range []func(event.Header) event.Event{
		func(h event.Header) event.Event {
			return event.LogWritten{Header: h, Message: long, Data: map[string]any{"a": long}}
		},
		func(h event.Header) event.Event { return event.StreamChunk{Header: h, Data: long} },
		func(h event.Header) event.Event { return event.StreamChunk{Header: h, Data: []string{long}} },
	} {
		typ, body, err := event.Body(make)
		if err != nil || len(body) > event.MaxBody || !json.Valid(body) || !strings.Contains(string(body), "(cut: it has ") {
			t.Errorf("%s: %d bytes, %v", typ, len(body), err)
		}
	}
}
