package pipeline_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/goweaver/weaver/internal/pipeline"
)

const schemaID = "https://github.com/goweaver/weaver/pipeline.schema.json"

func compile(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(pipeline.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(schemaID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(schemaID)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// Mistakes that only Parse finds: dependent values, duplicates, and limits in
// bytes. Files that the library cannot read are not listed.
var onlyParse = map[string]string{
	"defaults":              "durations are compared",
	"defaults-attempts":     "attempts may be said elsewhere",
	"secret-in-env":         "env and secret_env depend on each other",
	"tab-between-spaces":    "a library takes the tab for nothing",
	"tab-in-text":           "a library loses the tab",
	"tab-in-quotes":         "a library loses what follows the quotes",
	"not-utf8":              "bytes",
	"control-character":     "bytes",
	"cycle":                 "needs",
	"values":                "needs",
	"values-places":         "texts",
	"on-name":               "names",
	"include":               "no file is read",
	"schedule":              "the rule is parsed",
	"until-path":            "the path is parsed",
	"until-times":           "durations are compared",
	"undo-name":             "names",
	"undo-value":            "needs",
	"on-never":              "allow_failure of all tasks",
	"cycle-of-many":         "needs",
	"two-cycles":            "needs",
	"need-unknown":          "needs",
	"need-itself":           "needs",
	"need-list-as-text":     "needs",
	"surrogate":             "the text is read",
	"surrogate-cut-short":   "the text is read",
	"anchor-before-key":     "YAML",
	"alias-as-key":          "YAML",
	"tag":                   "YAML",
	"two-documents":         "a library reads the first one",
	"after-the-end":         "a library reads the first one",
	"text-begins-with-bang": "YAML",
	"param-missing":         "values of a run",
	"template":              "templates",
	"template-in-shell":     "templates",
	"foreach-glob-dir":      "templates",
	"foreach-from":          "needs",
	"foreach-from-item":     "templates",
	"artifacts-of-needs":    "templates",
	"artifacts-alone":       "templates",
}

func TestSchema(t *testing.T) {
	t.Parallel()
	schema := compile(t)
	for name, src := range files(t, "ok") {
		doc, ok := asJSON(src)
		if !ok {
			t.Errorf("%s cannot be read", name)
			continue
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("the schema refuses ok/%s: %v", name, err)
		}
	}
	for name, src := range files(t, "bad") {
		if name == "alias-bomb" {
			continue // the library expands all aliases, for days
		}
		doc, readable := asJSON(src)
		accepted := readable && schema.Validate(doc) == nil
		if why := onlyParse[name]; accepted && why == "" {
			t.Errorf("the schema accepts bad/%s, which is a mistake of its form", name)
		} else if !accepted && why != "" {
			t.Errorf("bad/%s is refused (readable: %t): take it out of onlyParse (%s)", name, readable, why)
		}
	}
}

// The schema and Parse have the same keys, each with a description.
func TestSchemaHasTheKeys(t *testing.T) {
	t.Parallel()
	var root map[string]any
	if err := json.Unmarshal(pipeline.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	at := func(path string) map[string]any {
		v := root
		for _, step := range strings.Fields(path) {
			next, ok := v[step].(map[string]any)
			if !ok && step == "mapping" { // the alternative that is a mapping
				for _, a := range v["oneOf"].([]any) {
					if alternative := a.(map[string]any); alternative["type"] == "object" {
						next, ok = alternative, true
					}
				}
			}
			if !ok {
				t.Fatalf("the schema has no %s in %s", step, path)
			}
			v = next
		}
		return v
	}
	paths := map[string]string{
		"the pipeline": "",
		"the budget":   "properties budget",
		"the schedule": "properties schedule",
		"a task":       "$defs task",
		"http":         "$defs task properties http",
		"until":        "$defs task properties http properties until",
		"approve":      "$defs task properties approve mapping",
		"on":           "properties on",
		"retry":        "$defs task properties retry",
		"concurrency":  "$defs task properties concurrency mapping",
		"a param":      "properties params additionalProperties mapping",
	}
	if got, want := slices.Sorted(maps.Keys(pipeline.Keys())), slices.Sorted(maps.Keys(paths)); !slices.Equal(got, want) {
		t.Fatalf("Parse has the levels %q, this test %q", got, want)
	}
	docs, err := os.ReadFile("../../docs/pipelines.md")
	if err != nil {
		t.Fatal(err)
	}
	for level, keys := range pipeline.Keys() {
		for _, key := range keys {
			if (level == "a task" || level == "the pipeline") && !bytes.Contains(docs, []byte("`"+key+"`")) {
				t.Errorf("docs/pipelines.md does not name the key %q of %s", key, level)
			}
		}
		object := at(paths[level])
		properties := object["properties"].(map[string]any)
		want := slices.Sorted(slices.Values(keys))
		if got := slices.Sorted(maps.Keys(properties)); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has the keys %q, Parse %q", level, got, want)
		}
		if object["additionalProperties"] != false {
			t.Errorf("%s: the schema allows any other key", level)
		}
		for key, p := range properties {
			p := p.(map[string]any)
			if p["description"] == nil || p["examples"] == nil {
				t.Errorf("%s: the schema has no description or no examples of %q", level, key)
			}
		}
	}
}

// The examples in the schema are valid.
func TestSchemaExamples(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(pipeline.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaID, doc); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for i, inner := range v {
				walk(path+"/"+string(rune('0'+i)), inner)
			}
		case map[string]any:
			for key, inner := range v {
				walk(path+"/"+key, inner)
			}
			examples, ok := v["examples"].([]any)
			if !ok {
				return
			}
			schema, err := c.Compile(schemaID + "#" + path)
			if err != nil {
				t.Fatal(err)
			}
			for _, example := range examples {
				seen++
				if err := schema.Validate(example); err != nil {
					t.Errorf("%s: the example %v is wrong: %v", path, example, err)
				}
			}
		}
	}
	walk("", doc)
	if seen < 30 {
		t.Errorf("only %d examples found", seen)
	}
}

// Every key in the tables is read: an invalid value is refused.
func TestEveryKeyIsRead(t *testing.T) {
	t.Parallel()
	form := map[string]string{
		"the pipeline": "KEY: [[[]]]\n",
		"the budget":   "budget: {KEY: [[[]]]}\n",
		"the schedule": "schedule: {KEY: [[[]]]}\n",
		"a task":       "tasks: {a: {KEY: [[[]]]}}\n",
		"http":         "tasks: {a: {http: {KEY: [[[]]]}}}\n",
		"until":        "tasks: {a: {http: {until: {KEY: [[[]]]}}}}\n",
		"approve":      "tasks: {a: {approve: {KEY: [[[]]]}}}\n",
		"on":           "on: {KEY: [[[]]]}\n",
		"retry":        "tasks: {a: {retry: {KEY: [[[]]]}}}\n",
		"concurrency":  "tasks: {a: {concurrency: {KEY: [[[]]]}}}\n",
		"a param":      "params: {a: {KEY: [[[]]]}}\n",
	}
	for level, keys := range pipeline.Keys() {
		for _, key := range keys {
			if key == "json" && level != "until" || key == "input" || key == "equals" || key == "not" || key == "in" {
				continue // these accept anything, or any list
			}
			e := mistakes(t, []byte(strings.Replace(form[level], "KEY", key, 1)))
			found := false
			for _, p := range e.Problems {
				found = found || strings.Contains(p.Message, `"`+key+`"`) && strings.Contains(p.Message, "a list")
			}
			if !found {
				t.Errorf("%s: a list of lists in %q is not reported: %v", level, key, e)
			}
		}
	}
}
