package monitor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Encoder makes the lines of JSON that tell events, of a job as of a worker.
// In them a block of output does not end inside a character: its rest comes
// with the next one, or with the end of the attempt. The zero value is ready;
// it is not for concurrent use.
type Encoder struct{ tails tails }

// Lines are the objects that tell an event that Plain has seen, without line
// breaks: most often one.
func (e *Encoder) Lines(ev event.Event) []string {
	if e.tails == nil {
		e.tails = make(tails)
	}
	if chunk, ok := ev.(event.StreamChunk); ok {
		whole, some := e.tails.whole(chunk)
		if !some {
			return nil
		}
		return []string{encode(whole)}
	}
	var lines []string
	if _, over := endOf(ev); over {
		for _, owed := range e.tails.end(ev.Head()) {
			lines = append(lines, encode(owed))
		}
	}
	return append(lines, encode(ev))
}

// encode makes an event an object: its type first, its own fields after it.
func encode(ev event.Event) string {
	raw, err := marshal(ev)
	if err != nil { // whoever reads the stream still learns that it happened
		raw, _ = marshal(struct {
			event.Header
			EncodeError string `json:"encode_error"`
		}{ev.Head(), err.Error()})
	}
	return object(ev.Type(), raw)
}

// object puts the name of an event in front of the fields of a JSON object.
func object(name string, fields []byte) string {
	return fmt.Sprintf(`{"event":%q,%s`, name, fields[1:])
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Plain replaces what handlers put into an event by plain values: their code
// (MarshalJSON, String, Error) runs here, and never while a lock is held.
func Plain(ev event.Event) event.Event {
	switch ev := ev.(type) {
	case event.LogWritten:
		ev.Data = maps.Clone(ev.Data)
		for key, v := range ev.Data {
			ev.Data[key] = plainValue(v)
		}
		return ev
	case event.StreamChunk:
		ev.Data = plainValue(ev.Data)
		return ev
	}
	return ev
}

// plainValue returns nil, a bool, a string, or JSON.
func plainValue(v any) any {
	switch v := v.(type) {
	case nil, bool, string:
		return v
	case time.Duration:
		return v.String()
	case slog.Value:
		return plainValue(v.Resolve().Any())
	case error:
		if _, ok := v.(json.Marshaler); !ok {
			return v.Error()
		}
	}
	raw, err := marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var s string
	if json.Unmarshal(raw, &s) == nil { // an id, a time
		return s
	}
	return json.RawMessage(raw)
}

// valueText is a plain value for people.
func valueText(v any) string {
	switch v := v.(type) {
	case json.RawMessage:
		return string(v)
	case string:
		if strings.ContainsAny(v, " \n\"=") || v == "" {
			return fmt.Sprintf("%q", v)
		}
		return v
	}
	return fmt.Sprint(v)
}

// tails holds the first bytes of characters whose rest has not arrived: in
// JSON a block of text cannot end inside a character.
type tails map[tail]string

type tail struct {
	task   task.ID
	stream string
}

// whole returns the chunk with whole characters only; false when none is left.
func (t tails) whole(ev event.StreamChunk) (event.StreamChunk, bool) {
	block, ok := ev.Data.(string)
	if !ok {
		return ev, true
	}
	key := tail{ev.TaskID, ev.Stream}
	block = t[key] + block
	delete(t, key)
	n := incomplete(block)
	if n > 0 {
		t[key] = block[len(block)-n:]
	}
	ev.Data = block[:len(block)-n]
	return ev, n < len(block) || n == 0
}

// end returns what the streams of a task still owe when its attempt ends.
func (t tails) end(h event.Header) []event.StreamChunk {
	var owed []event.StreamChunk
	for _, stream := range []string{"stdout", "stderr"} {
		key := tail{h.TaskID, stream}
		if block, ok := t[key]; ok {
			delete(t, key)
			owed = append(owed, event.StreamChunk{Header: h, Stream: stream, Data: block})
		}
	}
	return owed
}

// incomplete is how many bytes at the end of a text begin a character.
func incomplete(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRuneInString(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
