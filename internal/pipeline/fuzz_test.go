package pipeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/task"
)

// Whatever the bytes: no panic, and an answer with places that exist. What is
// accepted makes a job without problems, has no cycle, and is accepted by the
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
		submit(t, p, pipeline.JobOptions{BaseDir: "/base"})
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

// asJSON reads a file as an editor would, without our code; false where the
// library cannot.
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

// texts gives mappings the keys that JSON has.
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
