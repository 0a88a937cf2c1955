package pipeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/task"
)

// For any bytes, Parse does not panic and reports existing places only. An
// accepted file makes a job without problems, has no cycle, and is valid for the
// schema too.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"ok", "bad"} {
		for _, src := range files(f, dir) {
			f.Add(src)
		}
	}
	schema := compile(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := pipeline.Parse(src)
		if err != nil {
			var e *pipeline.Error
			if p != nil || !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("Parse = %+v, %#v", p, err)
			}
			checkShape(t, e, src)
			return
		}
		if len(p.Tasks) > 0 { // a foreach may have no values
			submit(t, p, pipeline.JobOptions{BaseDir: "/base"})
		}
		names := make([]string, 0, len(p.Tasks))
		for _, task := range p.Tasks {
			names = append(names, task.Name)
		}
		if cycle := task.FindCycle(names, p.Needs()); cycle != nil {
			t.Errorf("a cycle was accepted: %s", task.CycleString(cycle))
		}
		again, err := pipeline.Parse(append([]byte("# comment\n"), strings.TrimPrefix(string(src), "\ufeff")...))
		if err != nil {
			t.Fatalf("with a comment before it the file is refused: %v", err)
		}
		if again.Digest() != p.Digest() {
			t.Error("a comment changes the digest")
		}
		if doc, ok := asJSON(src); ok {
			if err := schema.Validate(doc); err != nil {
				t.Errorf("Parse accepts what the schema refuses: %v", err)
			}
		}
	})
}

// Every mistake has a place in the file: a line, a character of it or its end, and
// a length within the line.
func FuzzPlaces(f *testing.F) {
	for _, dir := range []string{"ok", "bad"} {
		for _, src := range files(f, dir) {
			f.Add(src, uint16(0), byte('x'))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, at uint16, b byte) {
		src = slices.Clone(src)
		if len(src) > 0 { // a valid file with a typo
			src[int(at)%len(src)] = b
		}
		_, err := pipeline.Parse(src)
		if err == nil {
			return
		}
		var e *pipeline.Error
		if !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		checkShape(t, e, src)
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(src), "\ufeff"))
		lines := strings.Split(text, "\n")
		for _, p := range e.Problems {
			if p.Line > len(lines) {
				t.Errorf("%+v: the file has %d lines", p, len(lines))
				continue
			}
			n := utf8.RuneCountInString(lines[p.Line-1])
			if p.Column > n+1 || p.Column-1+p.Length > n+1 {
				t.Errorf("%+v: the line has %d characters: %q", p, n, lines[p.Line-1])
			}
			if strings.ContainsAny(p.Message, "\n\r\x00\x1b") || !utf8.ValidString(p.Message+p.Hint) {
				t.Errorf("%+v: the message is no line of text", p)
			}
		}
	})
}

// asJSON reads a file with another library, as an editor would; false if the
// library fails.
func asJSON(src []byte) (any, bool) {
	var doc any
	if err := yaml.Unmarshal(bytes.TrimPrefix(src, []byte("\ufeff")), &doc); err != nil {
		return nil, false
	}
	raw, err := json.Marshal(texts(doc))
	if err != nil {
		return nil, false
	}
	var clean any
	if err := json.Unmarshal(raw, &clean); err != nil {
		return nil, false
	}
	return clean, true
}

// texts turns the keys of mappings into texts, as in JSON.
func texts(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = texts(v[k])
		}
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, inner := range v {
			raw, err := yaml.Marshal(k)
			if err != nil {
				return nil
			}
			m[strings.TrimSpace(string(raw))] = texts(inner)
		}
		return m
	}
	return v
}
