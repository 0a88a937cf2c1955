package value

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/pipeline/template"
	"github.com/goweaver/weaver/task"
)

// Texts are the texts of a command or request that may reference values.
type Texts struct {
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
	JSON    json.RawMessage // its strings; the keys of objects are literals
	Body    string
}

// Find returns the output of a task. It returns nil to leave the task's references
// as they are.
type Find func(name string) (*Output, error)

// Check returns the problems with the templates, each with its place.
func (t Texts) Check() []error { return t.check(CheckPath) }

func (t Texts) check(path func(template.Path) *Problem) []error {
	var problems []error
	_, _ = t.each(func(where string, _ place, text string) (string, error) {
		parsed, err := template.Parse(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", where, err))
			return "", nil
		}
		for _, p := range parsed.Paths() {
			problem := path(p)
			if problem == nil && File(p) != "" && !strings.HasPrefix(where, "argv") && !strings.HasPrefix(where, "env") {
				problem = &Problem{fmt.Sprintf("%s is the path of a file, which a command can be given, and no request", p), "write a command that sends it, as in run: [curl, --upload-file, …]"}
			}
			if problem != nil {
				problems = append(problems, fmt.Errorf("%s: %w", where, problem))
			}
		}
		return "", nil
	}, nil)
	if problem := checkURL(t.URL); problem != nil {
		problems = append(problems, fmt.Errorf("url: %w", problem))
	}
	return problems
}

// Paths returns all references to values of tasks in the texts.
func (t Texts) Paths() []template.Path {
	var all []template.Path
	_, _ = t.each(func(_ string, _ place, text string) (string, error) {
		all = append(all, Paths(text)...)
		return "", nil
	}, nil)
	return all
}

// Sample returns the texts with "x" in place of each value, to check the text
// around them.
func (t Texts) Sample() Texts {
	filled, err := t.each(func(_ string, _ place, text string) (string, error) { return sample(text), nil }, nil)
	if err != nil {
		return t
	}
	return filled
}

func sample(text string) string {
	parsed, err := template.Parse(text)
	if err != nil {
		return text
	}
	filled, err := parsed.Fill(func(template.Path) (string, error) { return "x", nil })
	if err != nil {
		return text
	}
	return filled
}

// Fill returns the texts as literals, with the values filled in. It returns errors
// of find unchanged; other errors are an *Error.
func (t Texts) Fill(find Find) (Texts, error) { return t.fill(filler{find: Remember(find)}) }

// FillSome is Fill for a find that knows some tasks only. The texts stay
// templates.
func (t Texts) FillSome(find Find) (Texts, error) {
	return t.fill(filler{find: Remember(find), some: true})
}

func (t Texts) fill(f filler) (Texts, error) {
	return t.each(func(where string, at place, text string) (string, error) {
		filled, err := f.text(at, text)
		return filled, located(where, err)
	}, func(text string) (json.RawMessage, bool, error) {
		raw, ok, err := f.whole(text)
		return raw, ok, located("json", err)
	})
}

// located adds the place to the error of a value.
func located(where string, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// Remember returns a find that calls find once per task.
func Remember(find Find) Find {
	known := make(map[string]*Output)
	return func(name string) (*Output, error) {
		if o, ok := known[name]; ok {
			return o, nil
		}
		o, err := find(name)
		if err == nil {
			known[name] = o
		}
		return o, err
	}
}

// place is the position of a text.
type place int

const (
	plain place = iota // an argument, a variable, a body
	inURL
	inHeader
	inJSON
)

// each returns the texts after fn. whole, if not nil, may replace a string of the
// JSON by any value.
func (t Texts) each(fn func(where string, at place, text string) (string, error), whole func(text string) (json.RawMessage, bool, error)) (Texts, error) {
	var err error
	use := func(where string, at place, text string) string {
		if err != nil || !template.Has(text) {
			return text
		}
		text, err = fn(where, at, text)
		return text
	}
	made := t
	made.Args = slices.Clone(t.Args)
	for i, arg := range t.Args {
		made.Args[i] = use(fmt.Sprintf("argv[%d]", i), plain, arg)
	}
	made.Env, made.Headers = maps.Clone(t.Env), maps.Clone(t.Headers)
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		made.Env[name] = use("env."+name, plain, t.Env[name])
	}
	made.URL = use("url", inURL, t.URL)
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		made.Headers[name] = use("headers."+name, inHeader, t.Headers[name])
	}
	made.Body = use("body", plain, t.Body)
	made.JSON = mapStrings(t.JSON, func(text string) json.RawMessage {
		if whole != nil && err == nil {
			var raw json.RawMessage
			var ok bool
			if raw, ok, err = whole(text); ok {
				return raw
			}
		}
		return quote(use("json", inJSON, text))
	})
	return made, err
}

// filler fills in values.
type filler struct {
	find Find
	some bool   // the result is a template
	item *found // value of {{.item}}; nil: not allowed, or with some left as it is
}

// literal returns a text for the result.
func (f filler) literal(text string) string {
	if f.some {
		return template.Escape(text)
	}
	return text
}

// get returns a value; known is false for a reference to leave.
func (f filler) get(p template.Path) (v found, known bool, err error) {
	if p[0] == Item && (f.item != nil || f.some) {
		return f.ofItem(p)
	}
	if problem := CheckPath(p); problem != nil {
		return found{}, false, &Error{p, problem.Error()}
	}
	o, err := f.find(p[1])
	if err != nil {
		return found{}, false, err
	}
	if o == nil {
		if !f.some {
			return found{}, false, &Error{p, fmt.Sprintf("the task needs no task %q, or it was deleted", p[1])}
		}
		return found{}, false, nil
	}
	if f.some && File(p) != "" && o.State == task.Succeeded {
		return found{}, false, nil // the worker makes the copy
	}
	v, err = o.get(p)
	return v, true, err
}

// kept returns the task whose file a path names; the worker finds it by its ID.
func (f filler) kept(p template.Path) (*Output, error) {
	if File(p) == "" {
		return nil, nil
	}
	return f.find(p[1])
}

func (f filler) text(at place, text string) (string, error) {
	parsed, err := template.Parse(text)
	if err != nil {
		return "", &Error{nil, err.Error()}
	}
	if at == inURL {
		return f.url(parsed)
	}
	var b strings.Builder
	for _, part := range parsed {
		if part.Path == nil {
			b.WriteString(f.literal(part.Literal))
			continue
		}
		v, known, err := f.get(part.Path)
		switch {
		case err != nil:
			return "", err
		case !known:
			path := part.Path
			if o, err := f.kept(path); err != nil {
				return "", err
			} else if o != nil {
				path = o.later(path)
			}
			b.WriteString(path.String())
			continue
		case at == inHeader && strings.ContainsFunc(v.text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return "", &Error{part.Path, "it has a line end or another control character, which no header can have: " + excerpt(v.text)}
		}
		b.WriteString(f.literal(v.text))
	}
	return b.String(), nil
}

// whole returns the value of a text that is a single reference: in JSON it keeps
// its type.
func (f filler) whole(text string) (raw json.RawMessage, ok bool, err error) {
	parsed, err := template.Parse(text)
	if err != nil || len(parsed) != 1 || parsed[0].Path == nil {
		return nil, false, nil
	}
	v, known, err := f.get(parsed[0].Path)
	switch {
	case err != nil || !known:
		return nil, false, err
	case v.json == nil:
		return quote(f.literal(v.text)), true, nil
	case f.some:
		return mapStrings(v.json, func(text string) json.RawMessage { return quote(Escape(text)) }), true, nil
	}
	return v.json, true, nil
}
