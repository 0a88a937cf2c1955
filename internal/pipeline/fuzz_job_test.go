package pipeline_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
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
			return // FuzzParse looks at these
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
	for _, k := range p.Tasks {
		o := object{}
		put(o, "type", k.Type)
		put(o, "run", k.Shell)
		put(o, "run", k.Argv)
		if k.HTTP != nil {
			o["http"] = request(t, k.HTTP)
		}
		if k.Input != nil {
			o["input"] = k.Input
		}
		needs := slices.Clone(k.Needs)
		slices.Reverse(needs)
		put(o, "needs", needs)
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
		put(o, "dir", k.Dir)
		put(o, "labels", k.Labels)
		if k.ConcurrencyKey != "" {
			shared := object{"key": k.ConcurrencyKey}
			put(shared, "limit", k.ConcurrencyLimit)
			o["concurrency"] = shared
		}
		put(o, "priority", k.Priority)
		tasks[k.Name] = o
	}
	budget := object{}
	put(budget, "max_attempts_per_task", p.Budget.MaxAttemptsPerTask)
	length(budget, "max_duration", p.Budget.MaxDuration)
	doc := object{"name": p.Name, "tasks": tasks, "description": "written anew", "budget": budget}
	put(doc, "env", p.Env)
	put(doc, "inherit_env", p.InheritEnv)
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

// Every mistake is at a place that the file has: in a line, at one of its
// characters or just behind the last, and not longer than the line.
func FuzzPlaces(f *testing.F) {
	for _, dir := range []string{"ok", "bad"} {
		for _, src := range files(f, dir) {
			f.Add(src, uint16(0), byte('x'))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, at uint16, b byte) {
		src = slices.Clone(src)
		if len(src) > 0 { // a good file with a typo
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

// A duration is accepted as what Go takes it for, and reaches the store as
// that; what a refusal offers instead is accepted.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{
		"90s", "1h.0m", "1m30s", "1.5h", "500ms", "1ms", "1500us", "1500µs", "1500μs", "999us", "0s", "0", "0.0", "", " ", "-5s", "+5s", ".5s", "5.s", "5", "5.5", "1h 30m", "90 s",
		"90 sec", "2 days", "1w", "5S", "5 Minutes.", "10M", "1d", "99999999999999999999h", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "1_000s", "٣s", "1s\n", "s", "1h30", "1x", "1s1s", "1e3", "0 seconds", "0 days", "0.0001 ms", "20000 weeks", "170000000",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		odd := func(r rune) bool { return r == 0 || r >= 0x7f && unicode.IsControl(r) } // JSON writes the others as \u00xx
		if !utf8.ValidString(text) || strings.ContainsFunc(text, odd) {
			return // not in a file
		}
		got, e := timeout(t, text)
		want, err := time.ParseDuration(text)
		if e == nil {
			if err != nil || got != want || got < time.Millisecond {
				t.Errorf("%q is %v, and by Go %v, %v", text, got, want, err)
			}
			return
		}
		if len(e.Problems) != 1 || e.Problems[0].Line != 4 || !strings.Contains(e.Problems[0].Message, `"timeout" of task "a"`) {
			t.Fatalf("%q: %v", text, e)
		}
		digits := strings.Trim(text, "0123456789.hmsuµn") == ""
		if err == nil && want >= time.Millisecond && digits && !hasBareDot(text) {
			t.Errorf("%q is %v by Go, and refused: %v", text, want, e)
		}
		for i, word := range strings.Fields(e.Problems[0].Hint) {
			word = strings.TrimRight(word, ",")
			if i > 0 && word[0] >= '0' && word[0] <= '9' && !strings.Contains(word, "…") {
				if _, e := timeout(t, word); e != nil {
					t.Errorf("%q is refused with the hint %q, and %q is refused as well: %v", text, e.Problems[0].Hint, word, e)
				}
			}
		}
	})
}

// A word without quotes is the number, the null or the boolean that it is in
// JSON, as it is written, or else the text. It is refused only when readers of
// YAML disagree about which number it is.
func FuzzWord(f *testing.F) {
	for _, word := range []string{
		"0", "-0", "1.50", "1e400", "12345678901234567890.000100", "-1E+5", "01", "+1", ".5", "5.", "0x10", "0o7", "0b1", "1_000", ".inf", "-.inf", ".nan", "1.2.3", "1e", "e1",
		"null", "Null", "nULL", "true", "True", "tRUE", "false", "yes", "no", "on", "off", "y", "abc", "1st", "2026-11-21", "12e03", "1.", "-", "--1", "0x", "._", "-.",
	} {
		f.Add(word)
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._"
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Trim(word, letters) != "" || strings.Trim(word, "-.") == "" {
			return // not a word, or an indicator of YAML
		}
		p, err := pipeline.Parse([]byte("name: n\ntasks:\n  a:\n    type: a.b.c.v1\n    input: " + word + "\n"))
		if err != nil {
			if digits := strings.TrimLeft(strings.ToLower(word), "+-._"); digits != "inf" && digits != "nan" && (digits == "" || digits[0] < '0' || digits[0] > '9') {
				t.Errorf("%s is refused: %v", word, err)
			}
			return
		}
		want := word
		if !json.Valid([]byte(word)) {
			want = `"` + word + `"`
			for _, same := range []string{"null", "true", "false"} {
				if word == strings.ToUpper(same) || word == strings.ToUpper(same[:1])+same[1:] {
					want = same
				}
			}
		}
		if got := string(p.Tasks[0].Input); got != want {
			t.Errorf("%s is read as %s, want %s", word, got, want)
		}
	})
}

// hasBareDot reports a dot without digits on both sides, as in 5.s and 1h.5m.
func hasBareDot(text string) bool {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	for i, c := range text {
		if c == '.' && (!digit(i-1) || !digit(i+1)) {
			return true
		}
	}
	return false
}

// timeout parses a pipeline whose only task has a timeout, and returns it as
// a store has it.
func timeout(t *testing.T, text string) (time.Duration, *pipeline.Error) {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Parse([]byte("name: n\ntasks:\n  a: {run: x,\n    timeout: " + string(quoted) + "}\n"))
	if err != nil {
		var e *pipeline.Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: %T: %v", text, err, err)
		}
		return 0, e
	}
	s := submit(t, p, pipeline.JobOptions{})
	if names := slices.Collect(maps.Keys(s.tasks)); len(names) != 1 || s.tasks["a"].Timeout != p.Tasks[0].Timeout {
		t.Errorf("%q is %v, and stored as %+v", text, p.Tasks[0].Timeout, s.tasks)
	}
	return p.Tasks[0].Timeout, nil
}
