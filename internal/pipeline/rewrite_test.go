package pipeline_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/value"
)

// A pipeline that is written down in another style, with its keys, tasks and
// needs in another order, is the same pipeline: the same digest, and the same
// job in the store.
func FuzzRewrite(f *testing.F) {
	for _, src := range files(f, "ok") {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := pipeline.Parse(src)
		if err != nil {
			return // FuzzParse covers these
		}
		raw := rewrite(t, p)
		if len(raw) > pipeline.MaxSize || depth(raw) > 50 {
			return // aliases can say more than a file can spell out
		}
		again, err := pipeline.Parse(raw)
		if err != nil {
			t.Fatalf("%v\nin:\n%s\nwritten anew:\n%s", err, src, raw)
		}
		if p.Digest() != again.Digest() {
			t.Errorf("another digest:\n%s\nwritten anew:\n%s", src, raw)
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
			// What a second submit changes.
			b.ID, b.JobID, b.Input = a.ID, a.JobID, a.Input
			b.CreatedAt, b.UpdatedAt, b.ReadyAt, b.DeadlineAt = a.CreatedAt, a.UpdatedAt, a.ReadyAt, a.DeadlineAt
			if !reflect.DeepEqual(a, b) {
				t.Errorf("the task %q is %+v, written anew it is %+v", name, a, b)
			}
			if a, b := slices.Sorted(slices.Values(first.needs[name])), slices.Sorted(slices.Values(second.needs[name])); !slices.Equal(a, b) {
				t.Errorf("%q needs %q, written anew %q", name, a, b)
			}
		}
		// What is written differently is not the same.
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

// rewrite writes a pipeline as JSON, which is YAML too.
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
	tasks := make(object, len(p.Tasks)) // sorted by their names
	hooked := make(map[string]string)   // the key of on
	for _, k := range p.Tasks {
		o := object{}
		put(o, "type", k.Type)
		put(o, "run", k.Shell)
		if k.Templates {
			k.Argv, k.Env = written(k.Argv).([]string), written(k.Env).(map[string]string)
		}
		put(o, "run", k.Argv)
		if k.HTTP != nil {
			o["http"] = request(t, k.HTTP)
		}
		if k.Approve != nil {
			o["approve"] = k.Approve
		}
		if k.Input != nil {
			o["input"] = k.Input
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
		put(o, "env", k.Env)
		put(o, "inherit_env", k.InheritEnv)
		put(o, "env_file", k.EnvFile)
		put(o, "secret_env", k.SecretEnv)
		put(o, "dir", k.Dir)
		put(o, "labels", k.Labels)
		if k.ConcurrencyKey != "" {
			shared := object{"key": k.ConcurrencyKey}
			put(shared, "limit", k.ConcurrencyLimit)
			o["concurrency"] = shared
		}
		put(o, "priority", k.Priority)
		tasks[k.Name] = o
		hooked[k.Name] = k.Hook
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
	put(doc, "env", p.Env)
	put(doc, "inherit_env", p.InheritEnv)
	put(doc, "env_file", p.EnvFile)
	put(doc, "secret_env", p.SecretEnv)
	put(doc, "dir", p.Dir)
	put(doc, "labels", p.Labels)
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// request writes what a file says of a request: its own JSON, with the
// fields that a file spells otherwise.
func request(t *testing.T, in *builtin.RequestInput) map[string]json.RawMessage {
	t.Helper()
	if in.Templates {
		made := *in
		made.URL, made.Headers, made.Body = written(in.URL).(string), written(in.Headers).(map[string]string), written(in.Body).(string)
		made.Templates = false
		var body any
		if in.JSON != nil {
			dec := json.NewDecoder(strings.NewReader(string(in.JSON)))
			dec.UseNumber()
			if err := dec.Decode(&body); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(written(body))
			if err != nil {
				t.Fatal(err)
			}
			made.JSON = raw
		}
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
	return fields
}

var valueOfNeed = regexp.MustCompile(`\{\{ *\.tasks\b`)

// written returns the texts of a task that has templates as a file has them:
// those without a value of a need are literals there.
func written(v any) any {
	switch v := v.(type) {
	case string:
		if !valueOfNeed.MatchString(v) {
			return value.Show(v)
		}
	case []string:
		made := slices.Clone(v)
		for i := range made {
			made[i] = written(made[i]).(string)
		}
		return made
	case map[string]string:
		made := maps.Clone(v)
		for name, text := range made {
			made[name] = written(text).(string)
		}
		return made
	case []any:
		for i := range v {
			v[i] = written(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = written(v[key])
		}
	}
	return v
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

// sameJSON compares values: the order of keys does not count, how a number is
// written does.
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
