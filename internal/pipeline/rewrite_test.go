package pipeline_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/pipeline/template"
)

// A pipeline written in another style, with another order of keys, tasks and
// needs, has the same digest and creates the same job.
func FuzzRewrite(f *testing.F) {
	for _, src := range files(f, "ok") {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := pipeline.Parse(src)
		if err != nil {
			return // FuzzParse covers these
		}
		if slices.ContainsFunc(p.Tasks, func(k pipeline.Task) bool { return k.MaxParallel > 0 && k.From == "" }) || p.Globs() {
			return // nodes written out have no common limit, and files are not part of the digest
		}
		raw := rewrite(t, p)
		if len(raw) > pipeline.MaxSize || depth(raw) > 50 {
			return // aliases can expand beyond the size limit
		}
		again, err := pipeline.Parse(raw)
		if err != nil {
			t.Fatalf("%v\nin:\n%s\nwritten anew:\n%s", err, src, raw)
		}
		if p.Digest() != again.Digest() {
			t.Errorf("another digest:\n%s\nwritten anew:\n%s", src, raw)
		}
		if len(p.Tasks) == 0 {
			return // a foreach without values
		}
		first, second := submit(t, p, pipeline.JobOptions{BaseDir: "/base"}), submit(t, again, pipeline.JobOptions{BaseDir: "/base"})
		if first.job.Name != second.job.Name || first.job.Budget != second.job.Budget {
			t.Errorf("the job is %+v, written anew it is %+v", first.job, second.job)
		}
		for name, a := range first.tasks {
			b := second.tasks[name]
			if !sameJSON(t, a.Input, b.Input) {
				t.Errorf("the input of %q is %s, written anew it is %s", name, a.Input, b.Input)
			}
			// Changes between two submits.
			b.ID, b.JobID, b.Input = a.ID, a.JobID, a.Input
			b.CreatedAt, b.UpdatedAt, b.ReadyAt, b.DeadlineAt = a.CreatedAt, a.UpdatedAt, a.ReadyAt, a.DeadlineAt
			if a.Undo != nil && b.Undo != nil {
				b.Undo.Began = a.Undo.Began
			}
			if !reflect.DeepEqual(a, b) {
				t.Errorf("the task %q is %+v, written anew it is %+v", name, a, b)
			}
			if a, b := slices.Sorted(slices.Values(first.needs[name])), slices.Sorted(slices.Values(second.needs[name])); !slices.Equal(a, b) {
				t.Errorf("%q needs %q, written anew %q", name, a, b)
			}
		}
		// Different files have different digests.
		one, two := *p, *p
		one.Tasks = append(slices.Clone(p.Tasks), pipeline.Task{Name: "\x00", Type: "a.b.c.v1", Input: json.RawMessage("1.0")})
		two.Tasks = append(slices.Clone(p.Tasks), pipeline.Task{Name: "\x00", Type: "a.b.c.v1", Input: json.RawMessage("1.00")})
		if one.Digest() == p.Digest() || one.Digest() == two.Digest() {
			t.Errorf("the digest %s is that of another pipeline", one.Digest())
		}
		if len(first.tasks) != len(second.tasks) || len(p.Digest()) != 64 {
			t.Errorf("%d tasks, written anew %d, digest %q", len(first.tasks), len(second.tasks), p.Digest())
		}
	})
}

// rewrite writes a pipeline as JSON, a subset of YAML.
func rewrite(t *testing.T, p *pipeline.Pipeline) []byte {
	t.Helper()
	type object = map[string]any
	put := func(o object, key string, v any) {
		if !reflect.ValueOf(v).IsZero() {
			o[key] = v
		}
	}
	length := func(o object, key string, d time.Duration) {
		if d != 0 {
			o[key] = d.String()
		}
	}
	tasks := make(object, len(p.Tasks)) // sorted by name
	hooked := make(map[string]string)   // by key of on
	for _, k := range p.Tasks {
		o := object{}
		put(o, "type", k.Type)
		put(o, "run", k.Shell)
		plain := template.Escape // texts that are not templates
		if k.Templates {
			plain = func(text string) string { return text }
		}
		put(o, "run", each(k.Argv, plain))
		if k.HTTP != nil {
			o["http"] = request(t, k.HTTP, plain)
		}
		if k.Approve != nil {
			approve := *k.Approve
			approve.Message = template.Escape(approve.Message)
			o["approve"] = approve
		}
		if k.Input != nil {
			o["input"] = escapeJSON(t, k.Input, template.Escape)
		}
		needs := slices.Clone(k.Needs)
		slices.Reverse(needs)
		put(o, "needs", needs)
		put(o, "if", k.If)
		put(o, "allow_failure", k.AllowFailure)
		retry := object{}
		put(retry, "max_attempts", k.Retry.MaxAttempts)
		length(retry, "base", k.Retry.Base)
		length(retry, "max", k.Retry.Max)
		if len(retry) > 0 {
			o["retry"] = retry
		}
		length(o, "timeout", k.Timeout)
		put(o, "env", values(k.Env, plain))
		put(o, "inherit_env", k.InheritEnv)
		put(o, "env_file", template.Escape(k.EnvFile))
		put(o, "secret_env", k.SecretEnv)
		put(o, "dir", template.Escape(k.Dir))
		put(o, "artifacts", escapeAll(k.Artifacts))
		put(o, "artifacts_optional", escapeAll(k.ArtifactsOptional))
		length(o, "artifacts_ttl", k.ArtifactsTTL)
		put(o, "labels", values(k.Labels, template.Escape))
		if k.ConcurrencyKey != "" {
			shared := object{"key": template.Escape(k.ConcurrencyKey)}
			put(shared, "limit", k.ConcurrencyLimit)
			o["concurrency"] = shared
		}
		put(o, "priority", k.Priority)
		put(o, "foreach_from", k.From)
		if k.From != "" {
			put(o, "max_parallel", k.MaxParallel)
		}
		tasks[k.Name] = o
		hooked[k.Name] = k.Hook
	}
	for i := range p.Tasks {
		if k := &p.Tasks[i]; k.Undoes != "" {
			tasks[k.Undoes].(object)["undo"] = tasks[k.Name]
			delete(tasks, k.Name)
		}
	}
	on := object{}
	for name, key := range hooked {
		if o := tasks[name]; key != "" {
			delete(o.(object), "needs")
			delete(o.(object), "if")
			on[key] = o
			delete(tasks, name)
		}
	}
	budget := object{}
	put(budget, "max_attempts_per_task", p.Budget.MaxAttemptsPerTask)
	put(budget, "max_total_attempts", p.Budget.MaxTotalAttempts)
	put(budget, "max_cost", p.Budget.MaxCost)
	put(budget, "max_repairs", p.Budget.MaxRepairs)
	put(budget, "max_no_progress", p.Budget.MaxNoProgress)
	length(budget, "max_duration", p.Budget.MaxDuration)
	doc := object{"name": p.Name, "tasks": tasks, "description": "written anew", "budget": budget}
	if len(on) > 0 {
		doc["on"] = on
	}
	retry := object{}
	put(retry, "max_attempts", p.Retry.MaxAttempts)
	length(retry, "base", p.Retry.Base)
	length(retry, "max", p.Retry.Max)
	if len(retry) > 0 {
		doc["retry"] = retry
	}
	length(doc, "timeout", p.Timeout)
	put(doc, "env", values(p.Env, template.Escape))
	put(doc, "inherit_env", p.InheritEnv)
	put(doc, "env_file", template.Escape(p.EnvFile))
	put(doc, "secret_env", p.SecretEnv)
	put(doc, "dir", template.Escape(p.Dir))
	put(doc, "labels", values(p.Labels, template.Escape))
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// request writes a request: its own JSON, with the fields that a file spells
// differently.
func request(t *testing.T, in *builtin.RequestInput, change func(string) string) map[string]json.RawMessage {
	t.Helper()
	if in.Templates {
		made := *in
		made.Templates = false
		in = &made
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"url", "headers", "json", "body"} {
		if fields[key] == nil {
			continue
		}
		if fields[key], err = json.Marshal(escapeJSON(t, fields[key], change)); err != nil {
			t.Fatal(err)
		}
	}
	return fields
}

// each and values change all texts.
func each(texts []string, change func(string) string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, change(text))
	}
	return all
}

func values(texts map[string]string, change func(string) string) map[string]string {
	if texts == nil {
		return nil
	}
	all := make(map[string]string, len(texts))
	for name, text := range texts {
		all[name] = change(text)
	}
	return all
}

// escapeJSON changes the texts of a value, but not its keys.
func escapeJSON(t *testing.T, raw json.RawMessage, change func(string) string) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return change(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	return walk(v)
}

func depth(raw []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			now++
			deepest = max(deepest, now)
		case !quoted && (c == '}' || c == ']'):
			now--
		}
	}
	return deepest
}

// sameJSON compares values: the order of keys does not count, the spelling of
// numbers does.
func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	read := func(raw json.RawMessage) (v any) {
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}

func escapeAll(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, template.Escape(text))
	}
	return all
}
