package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver/task"
)

// Encoder writes events as lines of JSON. Each line is an object: first "event" with the event's type, then the
// header's fields, then the event's own fields, named by their JSON tags:
//
//	{"event":"task.started","timestamp":"…","namespace":"default","task_id":"…","task_type":"…","attempt_no":1}
//
// Durations are in nanoseconds, IDs are text, times are RFC 3339. An event that cannot be encoded becomes an object
// with its header and "encode_error".
//
// A block of output ([StreamChunk]) may end inside a character, but a JSON string cannot. The first bytes of that
// character wait for the next block or for the end of the attempt. Use one Encoder per stream of events. The zero
// value is ready; it is not safe for concurrent use.
type Encoder struct{ tails tails }

// Lines returns the JSON objects for an event, without line breaks. It returns one object, zero for a block without a
// complete character, or several when an attempt ends inside a character. Handler values in the event are encoded
// here; call [Plain] earlier to encode them before taking a lock.
func (e *Encoder) Lines(ev Event) []string {
	ev = Plain(ev)
	if chunk, ok := ev.(StreamChunk); ok {
		whole, some := e.whole(chunk)
		if !some {
			return nil
		}
		return []string{encode(whole)}
	}
	var lines []string
	if EndsAttempt(ev) {
		for _, rest := range e.tails.end(ev.Head()) {
			lines = append(lines, encode(rest))
		}
	}
	return append(lines, encode(ev))
}

// Partial returns the JSON object of an [Encoder] for an event with unknown fields: fields with zero values are
// omitted.
func Partial(ev Event) string {
	line, err := appendKnown(fmt.Appendf(nil, `{"event":%q`, ev.Type()), reflect.ValueOf(Plain(ev)))
	if err != nil {
		return encode(ev)
	}
	return string(append(line, '}'))
}

func appendKnown(line []byte, of reflect.Value) ([]byte, error) {
	for f, v := range of.Fields() {
		if v.IsZero() {
			continue
		}
		if f.Anonymous {
			var err error
			if line, err = appendKnown(line, v); err != nil {
				return nil, err
			}
			continue
		}
		raw, err := marshal(v.Interface())
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		line = append(fmt.Appendf(line, ",%q:", name), raw...)
	}
	return line, nil
}

func (e *Encoder) whole(chunk StreamChunk) (StreamChunk, bool) {
	if e.tails == nil {
		e.tails = make(tails)
	}
	return e.tails.whole(chunk)
}

// encode returns the event as an object: its type, then its fields.
func encode(ev Event) string {
	raw, err := marshal(ev)
	if err != nil { // the reader of the stream still sees the event
		raw, _ = marshal(struct {
			Header
			EncodeError string `json:"encode_error"`
		}{ev.Head(), err.Error()})
	}
	return fmt.Sprintf(`{"event":%q,%s`, ev.Type(), raw[1:])
}

// marshal encodes a value without escaping <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Plain replaces handler values in an event by plain values. The handler's code (MarshalJSON, String, Error,
// LogValue) then runs here and not later, for example under the lock of a sink. The values of [LogWritten] and
// [StreamChunk] become nil, bool, string or json.RawMessage. A plain event is returned unchanged.
func Plain(ev Event) Event {
	switch ev := ev.(type) {
	case LogWritten:
		ev.Data = maps.Clone(ev.Data)
		for key, v := range ev.Data {
			ev.Data[key] = plainValue(v)
		}
		return ev
	case StreamChunk:
		ev.Data = plainValue(ev.Data)
		return ev
	}
	return ev
}

// plainValue returns nil, a bool, a string or a json.RawMessage. Errors, durations and values that cannot be encoded
// become text.
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
	if json.Unmarshal(raw, &s) == nil { // IDs and times
		return s
	}
	return json.RawMessage(raw)
}

// tails holds the first bytes of incomplete characters: a JSON string cannot end inside a character.
type tails map[tail]string

type tail struct {
	task   task.ID
	stream string
}

// whole returns the chunk with complete characters only, or false if there are no complete characters.
func (t tails) whole(ev StreamChunk) (StreamChunk, bool) {
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

// end returns the incomplete characters of a task's streams at the end of its attempt.
func (t tails) end(h Header) []StreamChunk {
	var rest []StreamChunk
	for _, stream := range []string{"stdout", "stderr"} {
		key := tail{h.TaskID, stream}
		if block, ok := t[key]; ok {
			delete(t, key)
			rest = append(rest, StreamChunk{Header: h, Stream: stream, Data: block})
		}
	}
	return rest
}

// incomplete returns the number of bytes at the end of a text that begin an incomplete character.
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
