package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/jsonnumber"
	"github.com/goweaver/weaver/internal/pipeline/template"
	"github.com/goweaver/weaver/internal/text"
)

// Until makes a request a poll: it is repeated until the answer meets a condition,
// and that answer is the output. The condition is JSON with exactly one of Equals,
// Not and In, or Status, or both.
//
// A network error, or a status that a request without Until retries, leads to
// another poll. With Status, so does every other status. Without Status, an
// unexpected status fails the task at once. A poll sends no Idempotency-Key.
//
// Timeout runs from the first poll, also while no worker runs, and is the only
// limit: polls use no attempts. After it the task fails permanently with the last
// answer; a retry of the task starts again.
//
// With pauses of 10 s or more, the task sleeps between polls and occupies no
// worker. There may be at most 2,000 such polls, because each leaves two steps. A
// shorter pause is spent in the running attempt: suspending and claiming the task
// every few seconds would cost the store more than the slot costs the worker.
// RetryAfter is not used, because it counts attempts.
type Until struct {
	Status []int  `json:"status,omitempty"` // any of these statuses
	JSON   string `json:"json,omitempty"`   // path in the body: .status, .items[0].id, ["any name"]

	Equals json.RawMessage   `json:"equals,omitempty"` // the value at the path equals this; 1 and 1.0 are equal, 1 and "1" are not
	Not    json.RawMessage   `json:"not,omitempty"`    // there is a value at the path, different from this
	In     []json.RawMessage `json:"in,omitempty"`     // the value at the path is one of these

	Every   Duration `json:"every,omitempty"`   // pause between polls, default 5s; Retry-After of an answer may extend it
	Timeout Duration `json:"timeout,omitempty"` // of the whole poll, default 1h
}

const (
	defaultEvery = 5 * time.Second
	defaultUntil = time.Hour
	sleepFrom    = 10 * time.Second // minimum pause for a sleep
	maxSleeps    = 2000
	pollBody     = 1 << 20 // maximum bytes of an answer to inspect
)

func (u *Until) every() time.Duration {
	if u.Every == 0 {
		return min(defaultEvery, u.limit())
	}
	return time.Duration(u.Every)
}

func (u *Until) limit() time.Duration {
	if u.Timeout == 0 {
		return defaultUntil
	}
	return time.Duration(u.Timeout)
}

// path parses JSON, with or without its first dot.
func (u *Until) path() (template.Path, error) {
	where := u.JSON
	if !strings.HasPrefix(where, ".") && !strings.HasPrefix(where, "[") {
		where = "." + where
	}
	t, err := template.Parse("{{" + where + "}}")
	if err != nil || len(t) != 1 || t[0].Path == nil {
		return nil, fmt.Errorf("until: json is %q, which names no value: write for example .status or .items[0].id", u.JSON)
	}
	return t[0].Path, nil
}

// validate returns all problems.
func (u *Until) validate() (problems []error) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf("until: "+format, args...)) }
	for _, status := range u.Status {
		if status < 100 || status > 599 {
			complain("%d is not a status: write numbers from 100 to 599", status)
		}
	}
	wanted := 0
	for _, v := range append([]json.RawMessage{u.Equals, u.Not}, u.In...) {
		if len(v) > 0 && !json.Valid(v) {
			complain("%q is not JSON: write a value such as \"done\", true or 7", v)
		}
	}
	for _, given := range []bool{len(u.Equals) > 0, len(u.Not) > 0, u.In != nil} {
		if given {
			wanted++
		}
	}
	switch {
	case u.JSON == "" && wanted > 0:
		complain("equals, not and in are about a value of the answer: write json with its place, such as .status")
	case u.JSON == "" && len(u.Status) == 0:
		complain("it does not say what is waited for: write for example {json: .status, equals: done} or {status: [200]}")
	case u.JSON != "" && wanted == 0:
		complain("json says where to look, and nothing says what for: write one of equals, not and in")
	case u.JSON != "" && wanted > 1:
		complain("json says where to look, and %d of equals, not and in what for: keep one of them", wanted)
	case u.In != nil && len(u.In) == 0:
		complain("in has no value: write for example [done, failed]")
	}
	if u.JSON != "" {
		if _, err := u.path(); err != nil {
			problems = append(problems, err)
		}
	}
	return append(problems, u.validateTimes()...)
}

func (u *Until) validateTimes() (problems []error) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf("until: "+format, args...)) }
	switch every, limit := u.every(), u.limit(); {
	case every < 0:
		complain(`every is %s, and cannot be negative: write for example "5s"`, every)
	case limit < 0:
		complain(`timeout is %s, and cannot be negative: write for example "1h"`, limit)
	case every > limit:
		complain("every is %s, and timeout %s: write a shorter pause, or give it longer", text.Setting(every), text.Setting(limit))
	case every >= sleepFrom && limit/every > maxSleeps:
		complain("%s with a pause of %s are %d polls, and at most %d are allowed: write a longer pause", text.Setting(limit), text.Setting(every), limit/every, maxSleeps)
	}
	return problems
}

// met reports whether an answer meets the condition, and returns the observed
// value: 200, .status = "running".
func (u *Until) met(status int, body []byte, whole bool) (met bool, seen string) {
	seen = strconv.Itoa(status)
	if len(u.Status) > 0 && !slices.Contains(u.Status, status) {
		return false, seen
	}
	if u.JSON == "" {
		return true, seen
	}
	path, err := u.path()
	if err != nil {
		return false, seen // Validate refuses it
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		if !whole {
			return false, fmt.Sprintf("%s, the body has more than %d bytes", seen, pollBody)
		}
		return false, seen + ", the body is no JSON"
	}
	name := path.Describe()
	value, ok := at(v, path)
	if !ok {
		return false, fmt.Sprintf("%s, %s is not there", seen, name)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return false, seen
	}
	return u.wants(value), fmt.Sprintf("%s, %s = %s", seen, name, firstRunes(string(raw), maxLine))
}

// wanted returns the condition for people: .status = "done".
func (u *Until) wanted() string {
	var parts []string
	for i, status := range u.Status {
		if i > 0 {
			parts[0] += " or " + strconv.Itoa(status)
		} else {
			parts = append(parts, strconv.Itoa(status))
		}
	}
	if path, err := u.path(); u.JSON != "" && err == nil {
		name, shown := path.Describe(), func(raw json.RawMessage) string { return firstRunes(string(raw), maxLine) }
		switch {
		case len(u.Equals) > 0:
			name += " = " + shown(u.Equals)
		case len(u.Not) > 0:
			name += " other than " + shown(u.Not)
		default:
			var all []string
			for _, v := range u.In {
				all = append(all, string(v))
			}
			name += " in [" + firstRunes(strings.Join(all, ", "), maxLine) + "]"
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, " and ")
}

func (u *Until) wants(value any) bool {
	is := func(raw json.RawMessage) bool { return equalJSON(value, raw) }
	switch {
	case len(u.Equals) > 0:
		return is(u.Equals)
	case len(u.Not) > 0:
		return !is(u.Not)
	}
	return slices.ContainsFunc(u.In, is)
}

// at returns the value at a path. A step of digits is an array index or an object
// key.
func at(v any, path template.Path) (any, bool) {
	for _, step := range path {
		switch inner := v.(type) {
		case map[string]any:
			next, ok := inner[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(inner) {
				return nil, false
			}
			v = inner[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// equalJSON compares a value decoded with json.Number to JSON.
func equalJSON(value any, raw json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var wanted any
	if dec.Decode(&wanted) != nil {
		return false
	}
	return equalValues(value, wanted)
}

func equalValues(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		return jsonnumber.Equal(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalValues)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, has := b[key]
			if !has || !equalValues(value, other) {
				return false
			}
		}
		return true
	}
	return a == b
}
