package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
)

// given parses a text with params, and files by pattern.
func given(t testing.TB, src string, params map[string]string, globs map[string][]string) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.ParseGiven([]byte(src), pipeline.Given{
		Params: params, BaseDir: "/base",
		Glob: func(dir, pattern string) ([]string, error) { return globs[dir+":"+pattern], nil },
	})
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, src)
	}
	return p
}

func names(p *pipeline.Pipeline) string {
	all := make([]string, 0, len(p.Tasks))
	for _, k := range p.Tasks {
		all = append(all, k.Name)
	}
	return strings.Join(all, " ")
}

func TestForeach(t *testing.T) {
	t.Parallel()
	p := parse(t, `
name: media
tasks:
  list: {run: ls}
  convert: {run: [ffmpeg, -i, "{{.item}}"], env: {OUT: "out/{{.item}}"}, foreach: [a.mp4, "b c.mp4", "$(rm)"], needs: [list]}
  join: {run: cat, needs: [convert]}
`)
	equal(t, "tasks", names(p), "list convert[a.mp4] convert[b c.mp4] convert[$(rm)] join")
	got := submit(t, p, pipeline.JobOptions{})
	in := input[builtin.RunInput](t, got, "convert[b c.mp4]")
	equal(t, "argument", in.Argv[2], "b c.mp4")
	equal(t, "env", in.Env["OUT"], "out/b c.mp4")
	equal(t, "needs of a node", strings.Join(got.needs["convert[$(rm)]"], " "), "list")
	equal(t, "needs of join", strings.Join(slices.Sorted(slices.Values(got.needs["join"])), " "), "convert[$(rm)] convert[a.mp4] convert[b c.mp4]")
	equal(t, "group", p.Tasks[1].Group, "convert")
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	p := parse(t, `
name: build
tasks:
  build:
    run: [make, "{{.matrix.os}}-{{.matrix.arch}}"]
    matrix: {os: [linux, mac], arch: [amd64, arm64], exclude: [{os: mac, arch: amd64}]}
`)
	equal(t, "tasks", names(p), "build[linux,amd64] build[linux,arm64] build[mac,arm64]")
	equal(t, "argument", p.Tasks[2].Argv[1], "mac-arm64")
}

func TestForeachGlob(t *testing.T) {
	t.Parallel()
	const src = `
name: media
dir: in
tasks:
  convert: {run: [ffmpeg, "{{.item}}"], foreach_glob: ["*.mp4", "*/*.mp4", "[ab].mp4"]}
  call: {http: {url: "http://h/{{.item}}"}, foreach_glob: "*.csv", needs: [convert]}
  own: {run: [cat, "{{.item}}"], dir: "/else", foreach_glob: "x"}
`
	p := given(t, src, nil, map[string][]string{
		"/base/in:*.mp4": {"b.mp4", "a.mp4"}, "/base/in:*/*.mp4": {"c/d.mp4"}, "/base/in:[ab].mp4": {"a.mp4"}, "/base/in:*.csv": {"1.csv"}, "/else:x": {"x"},
	})
	equal(t, "tasks", names(p), "convert[a.mp4] convert[b.mp4] convert[c/d.mp4] call[1.csv] own[x]")
	equal(t, "globs", p.Globs(), true)

	// The files of a glob are not part of the definition; the patterns are.
	other := given(t, src, nil, map[string][]string{"/base/in:*.mp4": {"z.mp4"}})
	equal(t, "the digest with other files", other.Digest(), p.Digest())
	equal(t, "the digest without files", parse(t, src).Digest(), p.Digest())
	if parse(t, strings.Replace(src, `"*.csv"`, `"*.tsv"`, 1)).Digest() == p.Digest() {
		t.Error("another pattern has the same digest")
	}
	if parse(t, strings.Replace(src, "ffmpeg", "ffprobe", 1)).Digest() == p.Digest() {
		t.Error("another command has the same digest")
	}
}

func TestGlobFails(t *testing.T) {
	t.Parallel()
	for _, glob := range []func(dir, pattern string) ([]string, error){
		func(string, string) ([]string, error) { return nil, errors.New("no permission") },
		func(string, string) ([]string, error) { return []string{"a\xff"}, nil },
		func(string, string) ([]string, error) { return make([]string, 1), nil }, // an empty name is a value like others
	} {
		_, err := pipeline.ParseGiven([]byte("name: a\ntasks: {a: {run: [cat, \"{{.item}}\"], foreach_glob: \"*\"}}"), pipeline.Given{Glob: glob})
		if files, _ := glob("", ""); err == nil && (len(files) == 0 || files[0] != "") {
			t.Errorf("accepted: %q", files)
		}
	}
}

// An expansion without values has no nodes; dependents treat it as a success.
func TestNoValues(t *testing.T) {
	t.Parallel()
	p := parse(t, `
name: media
tasks:
  first: {run: ls}
  convert: {run: [ffmpeg, "{{.item}}"], foreach_glob: "*.mp4", needs: [first], retry: {max_attempts: 3}}
  none: {run: [echo, "{{.item}}"], foreach: []}
  join: {run: cat, needs: [convert, first]}
  alone: {run: cat, needs: [none]}
  alarm: {run: logger, needs: [convert, none], if: failed}
  after: {run: logger, needs: [alarm]}
  done: {run: logger, needs: [alarm, convert], if: done}
  alert: {run: logger, needs: [convert, first], if: failed}
`)
	equal(t, "tasks", names(p), "first join alone done alert")
	got := submit(t, p, pipeline.JobOptions{})
	for name, want := range map[string]string{"join": "first", "alone": "", "done": "", "alert": "first"} {
		equal(t, "needs of "+name, strings.Join(got.needs[name], " "), want)
	}
	for _, want := range []string{
		`"foreach_glob" of task "convert" matches no file in the folder of the pipeline`,
		`"foreach" of task "none" has no values`,
		`task "alarm" is left out`, `task "after" is left out`,
	} {
		if !strings.Contains(warnings(p), want) {
			t.Errorf("no warning %s in:\n%s", want, warnings(p))
		}
	}
}

// NodeName shortens a value that is too long or not printable.
func TestNodeNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 90)
	p := parse(t, fmt.Sprintf("name: a\ntasks:\n  convert: {run: [cat, \"{{.item}}\"], foreach: [%s1, %[1]s2, \"a\\nb\", %s]}\n", long, strings.Repeat("ü", 60)))
	seen := make(map[string]bool)
	for _, k := range p.Tasks {
		if len(k.Name) > pipeline.MaxName || strings.ContainsAny(k.Name, "\n\ufffd") || seen[k.Name] {
			t.Errorf("a node is named %q", k.Name)
		}
		seen[k.Name] = true
	}
	equal(t, "the third", strings.HasPrefix(p.Tasks[2].Name, "convert[a?b~"), true)
	submit(t, p, pipeline.JobOptions{})
}

// The key of max_parallel belongs to the file.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	const src = "name: media\ntasks:\n  convert: {run: [cat, \"{{.item}}\"], foreach: [a, b], max_parallel: 4}\n"
	key := func(identity string) string {
		got := submit(t, parse(t, src), pipeline.JobOptions{Identity: identity}).tasks["convert[b]"]
		equal(t, "limit", got.ConcurrencyLimit, 4)
		return got.ConcurrencyKey
	}
	if a, b := key("/a.yaml"), key("/b.yaml"); a == b || !strings.HasPrefix(a, "media/convert@") {
		t.Errorf("the keys of two files are %q and %q", a, b)
	}
	if parse(t, src).Digest() == parse(t, strings.Replace(src, "4}", "5}", 1)).Digest() {
		t.Error("another limit has the same digest")
	}
}

// max_parallel of a pipeline is one limit for all tasks of the job.
func TestMaxParallel_OfJob(t *testing.T) {
	t.Parallel()
	const src = "name: media\nmax_parallel: 2\ntasks:\n  a: {run: [cat, a]}\n  b: {run: [cat, b], needs: a}\n"
	got := submit(t, parse(t, src), pipeline.JobOptions{}).tasks
	for _, name := range []string{"a", "b"} {
		equal(t, "limit", got[name].ConcurrencyLimit, 2)
	}
	if key := got["a"].ConcurrencyKey; key == "" || key != got["b"].ConcurrencyKey {
		t.Errorf("the keys are %q and %q", key, got["b"].ConcurrencyKey)
	}
	if parse(t, src).Digest() == parse(t, strings.Replace(src, "max_parallel: 2", "max_parallel: 3", 1)).Digest() {
		t.Error("another limit has the same digest")
	}
}

// A single reference in JSON keeps the type of the value.
func TestValuesInJSON(t *testing.T) {
	t.Parallel()
	p := given(t, `
name: a
params: {keep: 3, ratio: 1.50, loud: true, day: "3", braces: "{{.item}}"}
tasks:
  a:
    type: acme.billing.charge.v1
    input: {a: "{{.params.keep}}", b: "{{.params.ratio}}", c: "{{.params.loud}}", d: "{{.params.day}}", e: "{{.params.keep}}{{.params.keep}}", f: "{{.item}}", g: '{{"{{"}}', h: "{{.params.braces}}"}
    foreach: [1, "2"]
`, map[string]string{"day": "7"}, nil)
	equal(t, "the first", string(p.Tasks[0].Input), `{"a":3,"b":1.50,"c":true,"d":"7","e":"33","f":1,"g":"{{","h":"{{.item}}"}`)
	var second map[string]any
	if err := json.Unmarshal(p.Tasks[1].Input, &second); err != nil {
		t.Fatal(err)
	}
	equal(t, "the second item", second["f"], any("2"))
}

// References to needs stay; known values next to them are filled in.
func TestValuesOfNeedsStay(t *testing.T) {
	t.Parallel()
	p := parse(t, `
name: a
params: {day: "{{.item}}"}
tasks:
  a: {run: ls}
  b: {run: [echo, "{{.tasks.a.stdout}} {{.params.day}}", "{x"], env: {A: '{{"{{"}}'}, needs: [a]}
  c: {run: [echo, '{{"{{"}} {{.params.day}}'], needs: [a]}
`)
	equal(t, "templates of b", p.Tasks[1].Templates, true)
	equal(t, "an argument of b", p.Tasks[1].Argv[1], `{{.tasks.a.stdout}} {{"{"}}{{"{"}}.item}}`)
	equal(t, "another", p.Tasks[1].Argv[2], `{x`)
	equal(t, "env of b", p.Tasks[1].Env["A"], `{{"{"}}{{"{"}}`)
	equal(t, "templates of c", p.Tasks[2].Templates, false)
	equal(t, "an argument of c", p.Tasks[2].Argv[1], `{{ {{.item}}`)
}

// An update runs the nodes of new files and their dependents only.
func TestUpdateOfGlobs(t *testing.T) {
	t.Parallel()
	const src = `
name: media
tasks:
  convert: {run: [ffmpeg, "{{.item}}"], foreach_glob: "*.mp4"}
  list: {run: ls}
  join: {run: cat, needs: [convert]}
`
	before := given(t, src, nil, map[string][]string{"/base:*.mp4": {"a", "b", "gone"}})
	earlier := make(map[string]pipeline.Earlier)
	for name, info := range submit(t, before, pipeline.JobOptions{}).tasks {
		earlier[name] = pipeline.Earlier{State: "succeeded", Needed: true, Work: info.Metadata[pipeline.MetaWork]}
	}
	u := given(t, src, nil, map[string][]string{"/base:*.mp4": {"a", "b", "c"}}).Update(earlier)
	equal(t, "runs", fmt.Sprint(u.Run), "[{convert[c] it is new} {join it changed}]")
	equal(t, "kept", strings.Join(u.Kept, " "), "convert[a] convert[b] list")
	equal(t, "gone", strings.Join(u.Gone, " "), "convert[gone]")
}

func TestCollapse(t *testing.T) {
	t.Parallel()
	files := make([]string, 300)
	for i := range files {
		files[i] = fmt.Sprintf("%03d.mp4", i)
	}
	p := given(t, `
name: media
tasks:
  list: {run: ls}
  convert: {run: [ffmpeg, "{{.item}}"], foreach_glob: "*.mp4", needs: [list]}
  few: {run: [echo, "{{.item}}"], foreach: [a, b], needs: [convert]}
`, nil, map[string][]string{"/base:*.mp4": files})
	equal(t, "list", p.Graph().List(), `media: 303 tasks in 3 levels

1  list
2  convert (300)  <- list
3  few[a]         <- convert (300)
   few[b]         <- convert (300)
`)
	for what, drawn := range map[string]string{"DOT": p.Graph().DOT(), "Mermaid": p.Graph().Mermaid()} {
		if n := strings.Count(drawn, "convert"); n > 5 || n < 1 {
			t.Errorf("%s has convert %d times:\n%s", what, n, drawn)
		}
	}
}

func TestTooManyNodes(t *testing.T) {
	t.Parallel()
	numbers := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(i)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	for what, tc := range map[string]struct{ src, want string }{
		"foreach":       {`a: {run: [echo, "{{.item}}"], foreach: ` + numbers(10_001) + `}`, `"foreach" of task "a" gives 10001 nodes, and a pipeline has at most 10000 tasks`},
		"with others":   {`b: {run: ls}, a: {run: [echo, "{{.item}}"], foreach: ` + numbers(10_000) + `}`, `gives 10000 nodes, which makes 10001 tasks, and at most 10000 are allowed`},
		"matrix":        {`a: {run: ls, matrix: {a: ` + numbers(200) + `, b: ` + numbers(200) + `, c: ` + numbers(200) + `}}`, `gives 40000 nodes`},
		"needs":         {`a: {run: ls, foreach: ` + numbers(1000) + `}, b: {run: ls, needs: a, foreach: ` + numbers(1000) + `}`, "more than 200000 needs"},
		"long tasks":    {`a: {run: [echo, ` + strings.Repeat("x", 50_000) + `], foreach: ` + numbers(9000) + `}`, "each of its 9000 nodes would have a copy"},
		"values filled": {`a: {run: [echo` + strings.Repeat(`, "{{.params.x}}"`, 30_000) + `], foreach: [a, b, c]}`, "with their values filled in"},
	} {
		e := mistakes(t, []byte("name: a\nparams: {x: "+strings.Repeat("y", 4000)+"}\ntasks: {"+tc.src+"}"))
		if !strings.Contains(e.Error(), tc.want) {
			t.Errorf("%s: want %q, got %.300v", what, tc.want, e)
		}
	}
}

// A mistake caused by a value names the node, and is reported once.
func TestMistakeOfAValue(t *testing.T) {
	t.Parallel()
	e := mistakes(t, []byte("name: a\ntasks: {a: {http: {url: \"{{.item}}/x\"}, foreach: [\"http://h\", ftp, nothing]}}"))
	if len(e.Problems) != 1 || e.More != 0 || !strings.Contains(e.Error(), `task "a[ftp]"`) {
		t.Errorf("%v", e)
	}
}

func TestParams(t *testing.T) {
	t.Parallel()
	const src = `
name: nightly
params:
  day: 2026-11-20
  keep: {type: int, default: 3, description: how many}
  target: {type: string}
  size: {choices: [small, large], default: small}
tasks:
  a: {run: [echo, "{{.params.day}} {{.params.keep}} {{.params.target}} {{.params.size}}"]}
`
	p := given(t, src, map[string]string{"target": "x y", "keep": "5"}, nil)
	equal(t, "argument", p.Tasks[0].Argv[1], "2026-11-20 5 x y small")
	equal(t, "as JSON", p.ParamsJSON(), `{"day":"2026-11-20","keep":5,"size":"small","target":"x y"}`)
	equal(t, "the texts", fmt.Sprint(maps.Collect(maps.All(pipeline.ParamTexts(p.ParamsJSON())))), "map[day:2026-11-20 keep:5 size:small target:x y]")
	for stored, same := range map[string]bool{
		p.ParamsJSON():                                 true,
		`{"target":"x y"}`:                             false, // begun with the default of keep
		`{"target":"x y","keep":5}`:                    true,
		`{"target":"x y","keep":5,"old":true}`:         true,
		`{"target":"x y","keep":5,"day":"2026-11-21"}`: false,
		"": false,
	} {
		equal(t, "same as "+stored, p.SameParams(stored), same)
	}
	equal(t, "same without params", parse(t, "name: a\ntasks: {a: {run: ls}}").SameParams(""), true)

	for _, tc := range []struct{ name, value, want string }{
		{"dya", "1", `line 3, column 1: -p dya=1: the pipeline has no param "dya"; the params are day, keep, target, size`},
		{"kep", "1", `did you mean keep?`},
		{"keep", "x", `line 5, column 3: -p keep=x: the param is of type int, and "x" is not a whole number; write for example -p keep=3`},
		{"size", "larg", `-p size=larg: "larg" is none of the choices; did you mean -p size=large?`},
		{"day", "a\x00", "the value is not text"},
		{"day", "\xff", "the value is not text"},
		{"day", strings.Repeat("x", 5000), "is 5000 bytes long, and at most 4096 are allowed"},
	} {
		_, err := pipeline.ParseGiven([]byte(src), pipeline.Given{Params: map[string]string{"target": "x", tc.name: tc.value}})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("-p %s=%s: %v, want %q", tc.name, tc.value, err, tc.want)
		}
	}
	if p, err := pipeline.ParseGiven([]byte(src), pipeline.Given{Partial: true}); err != nil || p.Params[2].Known {
		t.Errorf("with values missing: %v", err)
	}
}

func BenchmarkForeach(b *testing.B) {
	var src strings.Builder
	src.WriteString("name: a\ntasks:\n  a:\n    run: [ffmpeg, -i, \"{{.item}}\", -o, \"out/{{.item}}\"]\n    env: {FILE: \"{{.item}}\"}\n    foreach:\n")
	for i := range pipeline.MaxTasks {
		fmt.Fprintf(&src, "    - file-%05d.mp4\n", i)
	}
	for b.Loop() {
		if _, err := pipeline.Parse([]byte(src.String())); err != nil {
			b.Fatal(err)
		}
	}
}

// Texts that reference a missing param are not checked, and cause no warning.
func TestPartial(t *testing.T) {
	t.Parallel()
	p, err := pipeline.ParseGiven([]byte(`
name: a
params: {base: {type: string}, dir: {type: string}}
tasks:
  a: {http: {url: "{{.params.base}}/x", json: {n: "{{.params.dir}}"}}}
  b: {run: [cat, "{{.item}}"], dir: "{{.params.dir}}", foreach_glob: "*.csv"}
  c: {run: [cat, "{{.item}}"], foreach_glob: "{{.params.dir}}/*.csv"}
  d: {run: [cat, "{{.item}}"], foreach: ["{{.params.base}}"]}
`), pipeline.Given{Partial: true, Glob: func(string, string) ([]string, error) { return nil, errors.New("asked") }})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tasks", names(p), "a d[{{.params.base}}]")
	equal(t, "warnings", warnings(p), "")
}
