package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goweaver/weaver/task"
)

// Parse parses a query. Times like -2h are relative to now. An error is a *Mistake.
func Parse(text string, now time.Time) (Query, error) {
	if len(text) > MaxText {
		return Query{}, &Mistake{Column: utf8.RuneCountInString(text[:MaxText]) + 1, What: fmt.Sprintf("the query has %d bytes: at most %d", len(text), MaxText)}
	}
	p := parser{now: now}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return Query{}, p.wrong(len(p.text), "the query is not valid UTF-8 here")
		}
		if r == 0 {
			return Query{}, p.wrong(len(p.text), "a NUL character: no text of a task has one")
		}
		p.text = append(p.text, r)
	}
	var q Query
	for p.space(); p.at < len(p.text); p.space() {
		t, err := p.term()
		if err != nil {
			return Query{}, err
		}
		q.terms = append(q.terms, t)
	}
	return q, nil
}

// parser reads a text from left to right.
type parser struct {
	text   []rune
	at     int
	now    time.Time
	before map[string]int // columns of the parsed terms, by field, operator and path
}

func (p *parser) wrong(at int, format string, args ...any) *Mistake {
	return &Mistake{Column: at + 1, What: fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.at < len(p.text) && unicode.IsSpace(p.text[p.at]) {
		p.at++
	}
}

// next returns the next character, or 0 at the end.
func (p *parser) next() rune {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// until reads up to a space, one of the characters in stop, or the end.
func (p *parser) until(stop string) string {
	from := p.at
	for p.at < len(p.text) && !unicode.IsSpace(p.text[p.at]) && !strings.ContainsRune(stop, p.text[p.at]) {
		p.at++
	}
	return string(p.text[from:p.at])
}

// quoted reads a quoted text.
func (p *parser) quoted() (string, *Mistake) {
	open := p.at
	var b strings.Builder
	for p.at++; ; p.at++ {
		switch r := p.next(); r {
		case 0:
			return "", p.wrong(open, "this quote is not closed")
		case '"':
			p.at++
			return b.String(), nil
		case '\\':
			p.at++
			if r = p.next(); r != '"' && r != '\\' {
				return "", p.wrong(p.at-1, `a backslash in quotes stands before a quote or a backslash: \" or \\`)
			}
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
}

// separators end the name of a field.
const separators = `:=<>"`

func (p *parser) term() (term, error) {
	from := p.at
	if p.next() == '"' {
		word, err := p.quoted()
		if err == nil {
			err = p.ended(from)
		}
		if err == nil && strings.TrimSpace(word) == "" {
			err = p.wrong(from, "there is nothing between the quotes")
		}
		if err != nil {
			return term{}, err
		}
		return term{values: []value{{text: word}}}, nil
	}
	if head := p.until(separators); p.at == len(p.text) || unicode.IsSpace(p.text[p.at]) {
		return term{values: []value{{text: head}}}, nil
	}
	p.at = from
	t, err := p.qualified()
	if err != nil {
		return term{}, err
	}
	return t, nil
}

// ended returns a Mistake unless the term ends here.
func (p *parser) ended(from int) *Mistake {
	if p.at < len(p.text) && !unicode.IsSpace(p.text[p.at]) {
		return p.wrong(p.at, "want a space after the term that begins in column %d", from+1)
	}
	return nil
}

// qualified reads a term with a field.
func (p *parser) qualified() (t term, err *Mistake) {
	from := p.at
	t.field = p.until("." + separators)
	f, known := fields[t.field]
	if !known {
		p.at = from
		text := p.until(separators)
		if p.next() == '"' {
			return t, p.wrong(p.at, "a quote in the middle of a word: put the whole text in quotes")
		}
		what := fmt.Sprintf("unknown qualifier %q (put a text with : = < > in quotes)", text+string(p.next()))
		return t, unknown(from+1, what, t.field+string(p.next()), Words())
	}
	if t.path, err = p.path(); err != nil {
		return t, err
	}
	switch {
	case len(t.path) > 0 && !f.path:
		return t, p.wrong(from, "%s has no parts: want %s", t.field, f.usage)
	case len(t.path) == 0 && t.field == fieldLabel:
		return t, p.wrong(from, "a label has a key: want %s", f.usage)
	case t.field == fieldLabel:
		t.path = []string{strings.Join(t.path, ".")}
	}
	if t.op = p.next(); t.op == 0 || !strings.ContainsRune(f.ops, t.op) {
		return t, p.wrong(p.at, "want %s", f.usage)
	}
	p.at++
	if err := p.again(&t, from); err != nil {
		return t, err
	}
	for more := true; more; {
		at := p.at
		v, err := p.value(&t, f)
		if err == nil {
			err = f.check(p, at, &v)
		}
		if err != nil {
			return t, err
		}
		t.values = append(t.values, v)
		if more = p.next() == ','; more {
			if t.field == fieldCreated {
				return t, p.wrong(p.at, "%s has one value", t.field)
			}
			p.at++
		}
	}
	return t, p.ended(from)
}

// again refuses a second term with the same field, operator and path.
func (p *parser) again(t *term, from int) *Mistake {
	about := t.field + string(t.op) + strings.Join(t.path, "\x00")
	if column, found := p.before[about]; found {
		what := "write several values in one term, with commas"
		if t.field == fieldCreated {
			what = "write it once"
		}
		return p.wrong(from, "%s is already in column %d: %s", string(p.text[from:p.at]), column, what)
	}
	if p.before == nil {
		p.before = make(map[string]int)
	}
	p.before[about] = from + 1
	return nil
}

// path reads the segments after a field; a dot precedes each.
func (p *parser) path() (path []string, err *Mistake) {
	for p.next() == '.' {
		p.at++
		at := p.at
		segment := ""
		if p.next() == '"' {
			if segment, err = p.quoted(); err != nil {
				return nil, err
			}
		} else if segment = p.until("." + separators); segment == "" {
			return nil, p.wrong(at, `want a key after the dot (an empty one is "")`)
		}
		path = append(path, segment)
	}
	return path, nil
}

// value reads one value of a term.
func (p *parser) value(t *term, f *field) (v value, err *Mistake) {
	from := p.at
	if p.next() == '"' {
		if v.text, err = p.quoted(); err != nil {
			return v, err
		}
		v.quoted = t.field == fieldInput || t.field == fieldOutput
		if v.text == "" && !f.empty {
			return v, p.wrong(from, "%s is never empty", t.field)
		}
		return v, nil
	}
	if v.text = p.until(`,"`); v.text == "" {
		return v, p.wrong(from, "a value is missing: want %s", f.usage)
	}
	return v, nil
}

// field describes the syntax of a field's terms.
type field struct {
	ops   string
	usage string
	path  bool // takes a path
	empty bool // a value may be ""
	check func(p *parser, at int, v *value) *Mistake
}

var fields = map[string]*field{
	fieldState:   {ops: ":", usage: "state:failed,blocked", check: oneOf("state", task.States())},
	fieldWaiting: {ops: ":", usage: "waiting:signal", check: oneOf("reason to wait", task.Waitings())},
	fieldError:   {ops: ":", usage: "error:timeout", check: oneOf("kind of error", task.ErrorKinds())},
	fieldUndo:    {ops: ":", usage: "undo:failed", check: oneOf("state of an undo", []string{undoOpen, undoBlocked, undoFailed, undoAbandoned})},
	fieldType:    {ops: ":", usage: "type:acme.billing.charge.v1 or type:acme.billing.*", check: checkType},
	fieldQueue:   {ops: ":", usage: "queue:NAME", check: anything},
	fieldKey:     {ops: ":", usage: "key:KEY", check: anything},
	fieldNode:    {ops: ":", usage: "node:NAME", check: anything},
	fieldParent:  {ops: ":", usage: "parent:ID", check: checkID},
	fieldJob:     {ops: ":", usage: "job:ID", check: checkID},
	fieldLabel:   {ops: "=", usage: "label.KEY=value", path: true, empty: true, check: anything},
	fieldInput:   {ops: "=", usage: "input.PATH=value", path: true, empty: true, check: anything},
	fieldOutput:  {ops: "=", usage: "output.PATH=value", path: true, empty: true, check: anything},
	fieldCreated: {ops: "<>", usage: "created>-2h or created<2026-01-02T03:04:05Z", check: checkTime},
}

func anything(*parser, int, *value) *Mistake { return nil }

func oneOf[T ~string](what string, list []T) func(*parser, int, *value) *Mistake {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return func(_ *parser, at int, v *value) *Mistake {
		if slices.Contains(words, v.text) {
			return nil
		}
		return unknown(at+1, fmt.Sprintf("%.40q: unknown %s", v.text, what), v.text, words)
	}
}

// checkType checks a task type or a prefix of task types.
func checkType(p *parser, at int, v *value) *Mistake {
	begin, pattern := strings.CutSuffix(v.text, ".*")
	switch {
	case pattern && task.CheckTypeName(begin+strings.Repeat(".x", max(0, 2-strings.Count(begin, ".")))+".v1") == nil:
		return nil
	case pattern || strings.Contains(v.text, "*"):
		return p.wrong(at, "%.60q: not a prefix of types; want whole parts and then .*, as acme.billing.*", v.text)
	}
	if err := task.CheckTypeName(v.text); err != nil {
		return p.wrong(at, "%s; or a prefix of types, as acme.billing.*", err)
	}
	return nil
}

func checkID(p *parser, at int, v *value) *Mistake {
	id, err := task.ParseID(v.text)
	if err != nil || id.IsZero() {
		return p.wrong(at, "%.40q: not an id; want all 26 characters", v.text)
	}
	v.text = id.String()
	return nil
}

// maxDays limits durations to the range of time.Time.
const maxDays = 100 * 366

// checkTime converts a time to an instant.
func checkTime(p *parser, at int, v *value) *Mistake {
	when, ok := p.instant(v.text)
	if !ok {
		return p.wrong(at, "%.40q: not a time; want 2026-01-02T03:04:05Z, 2026-01-02 (UTC), or a time ago: -2h, -90m, -7d", v.text)
	}
	if when.Before(time.Unix(0, 0)) { // an unset time of a program: the zero time would select every task
		return p.wrong(at, "%.40q: before 1970 no task was enqueued; is the time unset?", v.text)
	}
	v.text = when.UTC().Format(time.RFC3339Nano)
	return nil
}

func (p *parser) instant(text string) (time.Time, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok && strings.HasPrefix(text, "-") {
		n, err := strconv.Atoi(days[1:])
		return p.now.Add(time.Duration(-n) * 24 * time.Hour), err == nil && n >= 0 && n <= maxDays && days[1] != '+' && days[1] != '-'
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return p.now.Add(ago), ago <= 0 && ago >= -maxDays*24*time.Hour
	}
	if when, err := time.Parse(time.DateOnly, text); err == nil {
		return when, true
	}
	when, err := time.Parse(time.RFC3339Nano, text)
	return when, err == nil && when.UTC().Year() <= 9999
}
