package query_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/query"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

const someID = "01HZX0000000000000000000ZZ"

func mustParse(t *testing.T, text string) query.Query {
	t.Helper()
	q, err := query.Parse(text, now)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return q
}

func TestFilter(t *testing.T) {
	t.Parallel()
	id, err := task.ParseID(someID)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]store.Filter{
		"":                               {},
		" \t\n":                          {},
		"state:failed,blocked":           {States: []task.State{task.Failed, task.Blocked}},
		"state:\"failed\"":               {States: []task.State{task.Failed}},
		"type:acme.billing.*,a.b.c.v1":   {Types: []string{"acme.billing.*", "a.b.c.v1"}},
		"type:acme.*":                    {Types: []string{"acme.*"}},
		"type:acme.billing.charge.*":     {Types: []string{"acme.billing.charge.*"}},
		`queue:"a b"`:                    {Queue: "a b"},
		"waiting:signal error:timeout":   {Waiting: []task.Waiting{task.WaitSignal}, ErrorKinds: []task.ErrorKind{task.KindTimeout}},
		"label.team=pay label.x.y=":      {},
		`label.team=pay label.x.y=""`:    {Labels: map[string]string{"team": "pay", "x.y": ""}},
		`label."a b"="c,d"`:              {Labels: map[string]string{"a b": "c,d"}},
		"parent:" + someID:               {Parent: id},
		"job:" + strings.ToLower(someID): {Job: id},
		"created>-2h created<2026-01-10": {CreatedAfter: now.Add(-2 * time.Hour), CreatedBefore: time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)},
		"created>1970-01-01":             {CreatedAfter: time.Unix(0, 0).UTC()},
		"created<2026-01-02T03:04:05+01:00 created>-7d": {CreatedAfter: now.AddDate(0, 0, -7), CreatedBefore: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)},
	} {
		q, err := query.Parse(text, now)
		if strings.HasSuffix(text, "x.y=") {
			if err == nil {
				t.Errorf("Parse(%s): no error", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("Parse(%s): %v", text, err)
			continue
		}
		if got := q.Filter(); !reflect.DeepEqual(got, want) || !q.Exact() {
			t.Errorf("%s: filter %+v, exact %t, want %+v", text, got, q.Exact(), want)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	id, err := task.ParseID(someID)
	if err != nil {
		t.Fatal(err)
	}
	of := task.Task{
		Queue: "billing", Node: "sum", IdempotencyKey: "evt-456", ConcurrencyKey: "acct 7", ParentID: id, JobID: id,
		Labels: map[string]string{"team": "pay", "none": ""},
		Error:  &task.Error{Kind: task.KindHandler, Message: "No such\nCard: 4711", Code: "E_CARD", Step: "charge"},
		Input:  json.RawMessage(`{"order":{"id":42,"f":42.0,"e":1e3,"s":"42","t":true,"n":null,"l":[ ],"a.b":"ü\"x","":"empty"},"items":[{"id":1},{"id":2}],"k":"a,b"}`),
		Output: json.RawMessage(` "a b" `),
	}
	other := "01HZX0000000000000000000ZY"
	for text, want := range map[string]bool{
		"queue:other,billing": true, "queue:other,another": false,
		"node:sum": true, "node:su": false, "node:a,sum": true,
		"key:evt-456": true, `key:"acct 7"`: true, "key:evt": false,
		"parent:" + someID + "," + other: true, "parent:" + other + "," + other: false,
		"job:" + other + "," + someID: true,
		"label.team=ops,pay":          true, "label.team=ops,dev": false, `label.gone=a,""`: false, `label.none=a,""`: true,
		`"such card"`: true, `"step  such	card"`: false, `" such	card: "`: true, "SUCH": true, `"card such"`: false, "e_card": true, "charge": true, "evt-4": true, "sum": true, "acct": true,
		"no such": true, "no other": false, "billing": false,
		"input.order.id=42": true, `input.order.id="42"`: false, "input.order.id=42.0": false, "input.order.id=41,42": true,
		"input.order.f=42.0": true, "input.order.f=42": false, "input.order.e=1e3": true, "input.order.e=1000": false,
		"input.order.s=42": true, `input.order.s="42"`: true, "input.order.s=42.0": false,
		"input.order.t=true": true, `input.order.t="true"`: false, "input.order.n=null": true, "input.order.gone=null": false,
		"input.order.l=[]": true, `input.order."a.b"="ü\"x"`: true, `input.order.""=empty`: true,
		"input.items.1.id=2": true, "input.items.01.id=2": false, "input.items.2.id=2": false, "input.items.-1.id=2": false, "input.items.id=2": false,
		"input.order.id.x=42": false, `input.k="a,b"`: true, `input.k=a,b`: false,
		`output="a b"`: true, "output.x=1": false, "input.order.id=42 node:sum": true, "input.order.id=42 node:other": false,
	} {
		q := mustParse(t, text)
		if q.Exact() {
			t.Errorf("%s: exact", text)
		}
		if got := q.Row(&of) && q.Values(&of, &of); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
	for text, want := range map[string][2]bool{"input.a=1": {true, false}, "output.a=1": {false, true}, "node:a": {}, "word": {}} {
		q := mustParse(t, text)
		if in, out := q.NeedsValues(&of); in != want[0] || out != want[1] {
			t.Errorf("%s needs the input %t, the output %t", text, in, out)
		}
	}
	of.Redact = []string{"input/k"}
	q := mustParse(t, "word")
	if in, out := q.NeedsValues(&of); !in || !out {
		t.Error("a word in the error of a task that hides something needs no values")
	}
}

// A hidden value does not match, and neither does its placeholder.
func TestMatchHidden(t *testing.T) {
	t.Parallel()
	of := task.Task{Input: json.RawMessage(`{"card":{"n":"4711"},"id":1}`), Error: &task.Error{Message: "card 4711"}}
	shown := of
	shown.Input, shown.Error = json.RawMessage(`{"card":"[redacted]","id":1}`), &task.Error{Message: "card [redacted]"}
	for text, want := range map[string]bool{
		"input.card.n=4711": false, `input.card="[redacted]"`: false, "input.id=1": true, "4711": false, "card": true,
	} {
		q := mustParse(t, text)
		if got := q.Values(&of, &shown); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"stat:failed":                    `column 1: unknown qualifier "stat:" (put a text with : = < > in quotes); did you mean state:? there are: state:, type:,`,
		"a http://x":                     `column 3: unknown qualifier "http:" (put a text with : = < > in quotes); there are: state:,`,
		"x state:faild":                  `column 9: "faild": unknown state; did you mean failed? there are: pending, ready,`,
		"state:failed,":                  `column 14: a value is missing: want state:failed,blocked`,
		"state:":                         `column 7: a value is missing`,
		"state=failed":                   `column 6: want state:failed,blocked`,
		"state.x:failed":                 `column 1: state has no parts`,
		"state:failed,x":                 `column 14: "x": unknown state`,
		"waiting:sgnal":                  `column 9: "sgnal": unknown reason to wait; did you mean signal?`,
		"error:time":                     `column 7: "time": unknown kind of error`,
		"type:acme.bill*":                `column 6: "acme.bill*": not a prefix of types`,
		"type:*":                         `column 6: "*": not a prefix of types`,
		"type:acme.a.b":                  `column 6: task type name "acme.a.b" is not owner.domain.action.vN`,
		"label=x":                        `column 1: a label has a key: want label.KEY=value`,
		"label.a:x":                      `column 8: want label.KEY=value`,
		"label.=x":                       `column 7: want a key after the dot`,
		"input..a=x":                     `column 7: want a key after the dot`,
		"input.a=":                       `column 9: a value is missing`,
		"input.a>1":                      `column 8: want input.PATH=value`,
		"created>2h":                     `column 9: "2h": not a time; want 2026-01-02T03:04:05Z, 2026-01-02 (UTC), or a time ago`,
		"created:-2h":                    `column 8: want created>-2h or created<`,
		"created>-1h,-2h":                `column 12: created has one value`,
		"created>-999999d":               `column 9: "-999999d": not a time`,
		"created<0001-01-01T00:00:00Z":   `column 9: "0001-01-01T00:00:00Z": before 1970 no task was enqueued; is the time unset?`,
		"created<0000-12-31":             `column 9: "0000-12-31": before 1970`,
		"x created>1969-12-31T23:59:59Z": `column 11: "1969-12-31T23:59:59Z": before 1970`,
		"created>1970-01-01T00:59+01:00": `column 9: "1970-01-01T00:59+01:00": not a time`,
		"created>-36500d":                `column 9: "-36500d": before 1970`,
		"created>-1h created>-2h":        `column 13: created> is already in column 1: write it once`,
		"parent:abc":                     `column 8: "abc": not an id; want all 26 characters`,
		"job:00000000000000000000000000": `column 5: `,
		`"ü" "open`:                      `column 5: this quote is not closed`,
		`"a"b`:                           `column 4: want a space after the term that begins in column 1`,
		`queue:a"b"`:                     `column 8: want a space`,
		`a"b"`:                           `column 2: a quote in the middle of a word`,
		`"a\n"`:                          `column 3: a backslash in quotes stands before`,
		`"a\`:                            `column 3: a backslash`,
		`""`:                             `column 1: there is nothing between the quotes`,
		`"	 "`:                           `column 1: there is nothing between the quotes`,
		`queue:""`:                       `column 7: queue is never empty`,
		"queue:a x queue:b":              `column 11: queue: is already in column 1: write several values in one term, with commas`,
		`label.a=1 label."a"=2`:          `column 11: label."a"= is already in column 1`,
		"ab\xff":                         `column 3: the query is not valid UTF-8 here`,
		"ab\x00":                         `column 3: a NUL character`,
		strings.Repeat("é", 1025):        `column 1025: the query has 2050 bytes: at most 2048`,
	} {
		_, err := query.Parse(text, now)
		var m *query.Mistake
		if !errors.As(err, &m) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%q): %v\nwant %s", text, err, want)
		}
	}
	if _, err := query.Parse(strings.Repeat("é", 1024), now); err != nil {
		t.Errorf("2048 bytes: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`state:failed,blocked type:acme.billing.* queue:billing waiting:signal error:timeout label.team=pay`,
		`input.order.id=42 output.x="a b" created>-2h created<2026-01-02T03:04:05Z key:evt-456 node:sum "words" more`,
		"parent:" + someID + " job:" + someID + `,` + someID, `input."a.b".""="\"\\",[] label."x y"="",b`, `a,b "a:b" \`, "created<-3d\u00a0x",
	} {
		f.Add(s)
	}
	of := task.Task{Input: json.RawMessage(`{"a":[1,{"b":"c"}],"order":{"id":42}}`), Error: &task.Error{Message: "words"}}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text, now)
		if err != nil {
			var m *query.Mistake
			if !errors.As(err, &m) || m.Column < 1 || m.Column > len(text)+1 {
				t.Fatalf("Parse(%q): %v", text, err)
			}
			return
		}
		f, _ := q.Filter(), q.Row(&of) && q.Values(&of, &of)
		if q.Exact() && !f.Selects(&of) && len(strings.TrimSpace(text)) == 0 {
			t.Fatalf("Parse(%q) selects nothing", text)
		}
		printed := q.String()
		again, err := query.Parse(printed, now.Add(time.Hour))
		if len(printed) > query.MaxText {
			return
		}
		if err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("Parse(%q) prints %q, which parses to %#v, %v\nwant %#v", text, printed, again, err, q)
		}
	})
}

func TestUndo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]store.Filter{
		"undo:failed":                 {States: []task.State{task.Failed}, ErrorKinds: []task.ErrorKind{task.KindUndoFailed}},
		"undo:blocked":                {States: []task.State{task.Blocked}},
		"state:cancelled undo:failed": {States: []task.State{task.Cancelled}, ErrorKinds: []task.ErrorKind{task.KindUndoFailed}},
		"undo:failed,open":            {},
	} {
		if q := mustParse(t, text); !reflect.DeepEqual(q.Filter(), want) || q.Exact() {
			t.Errorf("%s: filter %+v, exact %t, want %+v", text, q.Filter(), q.Exact(), want)
		}
	}
	phase := func(s task.State, p *task.UndoPhase) *task.Task { return &task.Task{State: s, Undo: p} }
	for name, tc := range map[string]struct {
		of   *task.Task
		want string
	}{
		"none":      {phase(task.Failed, nil), ""},
		"pending":   {phase(task.Pending, &task.UndoPhase{}), "open"},
		"running":   {phase(task.Running, &task.UndoPhase{}), "open"},
		"blocked":   {phase(task.Blocked, &task.UndoPhase{}), "open blocked"},
		"given up":  {phase(task.Failed, &task.UndoPhase{GaveUp: true}), "failed"},
		"abandoned": {phase(task.Failed, &task.UndoPhase{GaveUp: true, Abandoned: true}), "abandoned"},
	} {
		var got []string
		for _, state := range []string{"open", "blocked", "failed", "abandoned"} {
			q, err := query.Parse("undo:"+state, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if q.Exact() {
				t.Errorf("undo:%s is said to be exact", state)
			}
			if q.Row(tc.of) {
				got = append(got, state)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s is %q, want %q", name, got, tc.want)
		}
	}
	if _, err := query.Parse("undo:lost", time.Now()); err == nil {
		t.Error("undo:lost is accepted")
	}
}
