package redact_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

type card struct {
	Number string `json:"number" weaver:"redact"`
	Owner  string
	At     time.Time
}

type base struct {
	Token string `json:"token,omitempty" weaver:"redact"`
}

type order struct {
	base
	Card  *card            `json:"card"`
	Cards []card           `json:"cards"`
	ByKey map[string]*card `json:"by_key"`
	Whole []string         `json:"whole/*" weaver:"redact"`
	Next  *order           `json:"next"`
	Skip  card             `json:"-"`
}

type partOfItself struct {
	A    string `weaver:"expire=1h"`
	Next *partOfItself
}

func TestExpire(t *testing.T) {
	t.Parallel()
	mark := task.Expired(time.Unix(0, 0))
	in := json.RawMessage(`{"a":[{"b":1.50,"c":"<x>"},{"b":null}],"d":` + string(mark) + `}`)
	got, changed, err := redact.New([]string{"input/a/#/b"}).Expire("input", in, mark)
	want := `{"a":[{"b":` + string(mark) + `,"c":"<x>"},{"b":null}],"d":` + string(mark) + `}`
	if err != nil || !changed || string(got) != want {
		t.Errorf("Expire = %s, %t, %v\nwant     %s", got, changed, err, want)
	}
	again, changed, err := redact.New([]string{"input/a/#/b", "input/d"}).Expire("input", got, task.Expired(time.Now()))
	if err != nil || changed || string(again) != want {
		t.Errorf("a second time: %s, %t, %v", again, changed, err)
	}
	if plain := task.WithoutExpired(got); string(plain) != `{"a":[{"b":null,"c":"<x>"},{"b":null}],"d":null}` || !json.Valid(plain) {
		t.Errorf("without what expired: %s", plain)
	}
	if _, _, err := redact.New([]string{"input/a"}).Expire("input", json.RawMessage(`{`), mark); err == nil {
		t.Error("what is no JSON has no error")
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	got, err := redact.Paths(reflect.TypeFor[[]order]())
	want := []string{
		"#/by_key/*/number", "#/card/number", "#/cards/#/number", "#/next/**/number", "#/next/**/token", "#/next/**/whole\x1f\\*", "#/token", "#/whole\x1f\\*",
	}
	if slices.Sort(want); err != nil || !slices.Equal(got, want) {
		t.Errorf("Paths = %q, %v\nwant    %q", got, err, want)
	}
	type kept struct {
		Card *struct {
			No string `weaver:"redact,expire=1h"`
		} `json:"card"`
		All []string `weaver:"expire=90m"`
	}
	expire, err := redact.Expiries(reflect.TypeFor[[]kept]())
	if want := []task.Expiry{{Path: "#/card/No", After: time.Hour}, {Path: "#/All", After: 90 * time.Minute}}; err != nil || !slices.Equal(expire, want) {
		t.Errorf("Expiries = %v, %v, want %v", expire, err, want)
	}
	for _, plain := range []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[time.Time](), reflect.TypeFor[any](), nil} {
		if got, err := redact.Paths(plain); got != nil || err != nil {
			t.Errorf("%v: %q, %v", plain, got, err)
		}
	}
	for name, bad := range map[string]reflect.Type{
		`want weaver:"redact"`: reflect.TypeFor[struct {
			A string `weaver:"secret"`
		}](),
		"not encoded by itself": reflect.TypeFor[struct {
			a string `weaver:"redact"`
		}](),
		"a part of itself": reflect.TypeFor[partOfItself](),
		`"redact,soon"`: reflect.TypeFor[struct {
			A string `weaver:"redact,soon"`
		}](),
		`"expire=-1h"`: reflect.TypeFor[struct {
			A string `weaver:"expire=-1h"`
		}](),
		"base of": reflect.TypeFor[struct {
			base `weaver:"redact"`
		}](),
	} {
		if _, err := redact.Paths(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, want an error that says %s", bad, err, name)
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	key := func(k string) string {
		p, err := redact.CheckKey(k)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		patterns   []string
		in, masked string
		texts      int
	}{
		{[]string{"input/card/number"}, `{"a":1.50,"card":{"number":"4929","b":"<x>"},"number":"kept"}`, `{"a":1.50,"card":{"number":"[redacted]","b":"<x>"},"number":"kept"}`, 1},
		{[]string{"input/card"}, `{"card":{"$weaver":"expired","$weaver":"2026-11-23T07:00:00Z"},"n":1}`, `{"card":{"$weaver":"expired","$weaver":"2026-11-23T07:00:00Z"},"n":1}`, 0},
		{[]string{"input/card"}, `{"card":{"pin":{"$weaver":"expired","$weaver":"2026-11-23T07:00:00Z"},"number":"4929"}}`, `{"card":"[redacted]"}`, 3},
		{[]string{"input/card"}, `{"card":{"$weaver":"expired","$weaver":"4929"}}`, `{"card":"[redacted]"}`, 0},
		{[]string{"output/card/number"}, `{"card":{"number":"4929"}}`, `{"card":{"number":"4929"}}`, 0},
		{[]string{"input/#/n"}, `[{"n":1},{"n":[2,"3"]},{"n":null}, 7]`, `[{"n":"[redacted]"},{"n":"[redacted]"},{"n":null},7]`, 3},
		{[]string{"input/*/n"}, `{"x":{"n":1},"y":[{"n":2}]}`, `{"x":{"n":"[redacted]"},"y":[{"n":2}]}`, 1},
		{[]string{key("password")}, `{"Password":"a","l":[{"x":{"password":true}}]}`, `{"Password":"[redacted]","l":[{"x":{"password":"[redacted]"}}]}`, 1},
		{[]string{key("*token*")}, `{"api_token_2":"a","t":1}`, `{"api_token_2":"[redacted]","t":1}`, 1},
		{[]string{key("/a/b")}, `{"a":{"b":1},"c":{"a":{"b":2}}}`, `{"a":{"b":"[redacted]"},"c":{"a":{"b":2}}}`, 1},
		{[]string{key("n")}, `{"big":123456789012345678901234567890,"n":0,"e":{},"l":[]}`, `{"big":123456789012345678901234567890,"n":"[redacted]","e":{},"l":[]}`, 1},
		{[]string{key("n")}, `no JSON`, `"[redacted]"`, 0},
		{[]string{"input/" + redact.Literal("a/*[b")}, `{"a/*[b":1,"a/xx[b":2}`, `{"a/*[b":"[redacted]","a/xx[b":2}`, 1},
		{nil, `{"password":1}`, `{"password":1}`, 0},
	} {
		r := redact.New(c.patterns)
		if got := r.JSON(redact.Input, json.RawMessage(c.in)); string(got) != c.masked {
			t.Errorf("%q of %s = %s\nwant %s", c.patterns, c.in, got, c.masked)
		}
		if got := r.Texts(redact.Input, json.RawMessage(c.in)); len(got) != c.texts {
			t.Errorf("%q of %s has the texts %q, want %d", c.patterns, c.in, got, c.texts)
		}
	}
	for _, bad := range []string{"", "/", "a/b", "a//b", "[", "/a/["} {
		if _, err := redact.CheckKey(bad); err == nil {
			t.Errorf("CheckKey(%q): no error", bad)
		}
	}
}

func TestHide(t *testing.T) {
	t.Parallel()
	if got := redact.Hide("card 4929-1 of bob", []string{"4929-1", "bob"}); got != "card [redacted] of bob" {
		t.Errorf("Hide = %q: a short text stays", got)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	wrong := &task.Error{Kind: task.KindHandler, Message: "no 4929-1234", Stack: "at 4929-1234"}
	stepped := json.RawMessage(`{"token":"abcd-efgh"}`)
	h := store.History{
		Task: task.Task{
			Redact: []string{"input/card", "*/**/token"}, Input: json.RawMessage(`{"card":"4929-1234","n":1}`), Error: wrong,
			Output: json.RawMessage(`{"token":"t"}`), UnblockInput: json.RawMessage(`{"token":"t"}`), Progress: &task.Progress{Message: "at 4929-1234"},
			Undo: &task.UndoPhase{Error: wrong},
		},
		Attempts:    []task.Attempt{{Error: wrong}},
		Decisions:   []task.Decision{{Reason: task.Reason{Text: "for abcd-efgh", Evidence: map[string]any{"card": "4929-1234"}}}},
		Steps:       []task.Step{{Value: stepped}, {Value: json.RawMessage(`{"pin":"9876"}`), Redact: []string{"pin"}, Error: wrong}},
		Signals:     []task.Signal{{Payload: json.RawMessage(`{"token":"t"}`)}},
		Checkpoints: []task.Checkpoint{{Value: json.RawMessage(`{"token":"t"}`)}},
	}
	redact.History(&h)
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"4929", "abcd", "9876", `"t"`} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%s is in %s", secret, b)
		}
	}
	if wrong.Message != "no 4929-1234" || string(stepped) != `{"token":"abcd-efgh"}` {
		t.Error("what the caller shares was changed")
	}
	tasks := []task.Task{{Redact: []string{"input/card"}, Input: json.RawMessage(`{"card":"4929-1234"}`), Error: wrong}}
	if redact.Tasks(tasks); tasks[0].Error.Message != "no [redacted]" {
		t.Errorf("the task is %+v", tasks[0])
	}
}

// forest, chain and shelf contain themselves, two of them without a struct.
type (
	forest []forest
	chain  map[string]*chain
	shelf  []struct {
		Kids   shelf  `json:"kids"`
		Woods  forest `json:"woods"`
		Secret string `json:"secret" weaver:"redact"`
	}
)

func TestPathsOfListsOfThemselves(t *testing.T) {
	t.Parallel()
	for typ, want := range map[reflect.Type][]string{
		reflect.TypeFor[forest](): nil,
		reflect.TypeFor[chain]():  nil,
		reflect.TypeFor[shelf]():  {"#/kids/#/**/secret", "#/secret"},
	} {
		if got, err := redact.Paths(typ); err != nil || !slices.Equal(got, want) {
			t.Errorf("Paths of %s = %q, %v, want %q", typ, got, err, want)
		}
	}
}
