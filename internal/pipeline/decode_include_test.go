package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
)

// include parses a file that may include others, by path.
func include(src string, others map[string]string) (*pipeline.Pipeline, error) {
	return pipeline.ParseGiven([]byte(src), pipeline.Given{Read: func(path string) ([]byte, error) {
		if src, ok := others[path]; ok {
			return []byte(src), nil
		}
		return nil, errors.New("there is no such file")
	}})
}

const common = `
env: {LANG: C}
dir: work
retry: {max_attempts: 3, base: 1s}
labels: {team: ci}
timeout: 5m
tasks:
  build: {run: make}
  test: {run: make test, needs: build, env: {A: b}, dir: /tmp}
`

// The settings of an included file apply to its own tasks, and its paths are
// relative to its folder.
func TestInclude(t *testing.T) {
	t.Parallel()
	const src = "name: deploy\nenv: {PORT: 1}\nbudget: {max_attempts_per_task: 4}\ninclude: lib/common.yaml\ntasks: {deploy: {run: ./deploy.sh, needs: [test]}}\non: {done: {run: x}}"
	p, err := include(src, map[string]string{"lib/common.yaml": common})
	if err != nil {
		t.Fatal(err)
	}
	sub := submit(t, p, pipeline.JobOptions{BaseDir: "/base"})
	for name, want := range map[string]string{
		"build":   "/base/lib/work map[LANG:C] 3 map[team:ci] 5m0s []",
		"test":    "/tmp map[A:b LANG:C] 3 map[team:ci] 5m0s [build]",
		"deploy":  "/base map[PORT:1] 4 map[] 0s [test]",
		"on done": "/base map[PORT:1] 4 map[] 0s [build test deploy]",
	} {
		k := sub.tasks[name]
		var in builtin.RunInput
		if err := json.Unmarshal(k.Input, &in); err != nil {
			t.Fatal(name, err)
		}
		needs := append([]string{}, sub.needs[name]...)
		slices.SortFunc(needs, func(a, b string) int {
			return strings.Index("build test deploy", a) - strings.Index("build test deploy", b)
		})
		equal(t, name, fmt.Sprint(in.Dir, " ", in.Env, " ", k.MaxAttempts, " ", k.Labels, " ", k.Timeout, " ", needs), want)
	}

	only, err := include("name: all\ninclude: [lib/common.yaml]", map[string]string{"lib/common.yaml": common})
	if err != nil || len(only.Tasks) != 2 {
		t.Errorf("a file of nothing but includes: %v, %v", only, err)
	}
}

// The digest and the comparison of an update cover included files, but not their
// location.
func TestDigestOfIncludes(t *testing.T) {
	t.Parallel()
	digest := func(path, inner string) string {
		p, err := include("name: a\ninclude: "+path, map[string]string{path: inner})
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest()
	}
	first := digest("lib/common.yaml", common)
	equal(t, "with a comment", digest("lib/common.yaml", "# words\n"+common), first)
	equal(t, "by another name", digest("./lib/tasks.yaml", common), first)
	for what, other := range map[string]string{
		"another command": digest("lib/common.yaml", strings.Replace(common, "run: make}", "run: make all}", 1)),
		"another default": digest("lib/common.yaml", strings.Replace(common, "LANG: C", "LANG: D", 1)),
		"another folder":  digest("common.yaml", common),
	} {
		if other == first {
			t.Errorf("%s does not change the digest", what)
		}
	}
}

func TestIncludeMistakes(t *testing.T) {
	t.Parallel()
	const tasks = "tasks: {a: {run: x}}"
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("f%d.yaml", i)
	}
	files := map[string]string{
		"ok.yaml": tasks, "same.yaml": tasks, "sub/slip.yaml": "env: {A: b}\ntasks:\n  b: {rnu: x}\n", "empty.yaml": "", "none.yaml": "env: {A: b}",
		"name.yaml": "name: x\n" + tasks, "nested.yaml": "include: ok.yaml\n" + tasks, "on.yaml": "on: {done: {run: x}}\n" + tasks, "budget.yaml": "budget: {}\n" + tasks,
		"outer.yaml": "tasks: {b: {run: x, needs: [mine]}}", "huge.yaml": strings.Repeat("#", pipeline.MaxSize+1), "list.yaml": "[a]", "on-done.yaml": "tasks: {on done: {run: x}}",
		"each.yaml": "tasks: {c: {run: x, foreach: [a]}}", "node.yaml": "tasks: {'c[a]': {run: x}}", "glob.yaml": "tasks: {a: {run: x, foreach_glob: '*.no'}}",
		"param.yaml": "tasks: {b: {run: [x, '{{.params.day}}']}}", "slow.yaml": "timeout: 2h\ntasks: {b: {run: x}}", "text.yaml": "tasks: {b: x}",
		"warns.yaml": "tasks: {b: {run: [echo, $HOME]}}", "many.yaml": "tasks:\n" + strings.Repeat("  t: {run: x}\n", 30),
	}
	for _, c := range []struct{ src, says string }{
		{"include: missing.yaml", `x.yaml:2:10: the included file "missing.yaml" cannot be read: there is no such file`},
		{"include: [ok.yaml, ./ok.yaml]", `x.yaml:2:20: "./ok.yaml" is included twice`},
		{"include: [ok.yaml, same.yaml]", `x.yaml:2:20: "ok.yaml" and "same.yaml" both have a task "a"`},
		{"include: ok.yaml\n" + tasks, `x.yaml:3:9: the task "a" is in "ok.yaml", too, which is included`},
		{"include: [each.yaml, node.yaml]", `x.yaml:2:22: two tasks of the included files are named "c[a]"`},
		{"include: glob.yaml\n" + tasks, `x.yaml:3:9: the task "a" is in "glob.yaml", too, which is included`},
		{"params: {day: 1}\ninclude: param.yaml", `dir/param.yaml:1:23: "{{.params.day}}" in an entry of "run" of task "b" names a param, which an included file has none of`},
		{"budget: {max_duration: 10m}\ninclude: slow.yaml", `dir/slow.yaml:1:10: "timeout" of the pipeline is 2h, and the budget gives the whole job 10m`},
		{"include: text.yaml\ntasks: {z: {run: x, needs: [b]}}", `dir/text.yaml:1:12: task "b" is the text "x", not a mapping`},
		{"include: []", `"include" of the pipeline is empty`},
		{"include: {ci: ok.yaml}", `"include" of the pipeline is a mapping, not a list of names`},
		{"include: ''", `"include" of the pipeline is empty`},
		{"include: [" + strings.Join(many, ", ") + "]", "names 101 files, and at most 100 are allowed"},
		{"inclde: ok.yaml\n" + tasks, `did you mean "include"?`},
		{"include: sub/slip.yaml", `dir/sub/slip.yaml:3:7: unknown key "rnu" of task "b"`},
		{"include: empty.yaml", "dir/empty.yaml:1:1: the file is empty"},
		{"include: none.yaml", "dir/none.yaml:1:1: the included file has no tasks"},
		{"include: list.yaml", "dir/list.yaml:1:1: the included file has no tasks"},
		{"include: name.yaml", `dir/name.yaml:1:1: unknown key "name" of the included file`},
		{"include: nested.yaml", `dir/nested.yaml:1:1: unknown key "include" of the included file`},
		{"include: on.yaml", `dir/on.yaml:1:1: unknown key "on" of the included file`},
		{"include: budget.yaml", `dir/budget.yaml:1:1: unknown key "budget" of the included file`},
		{"include: outer.yaml\ntasks: {mine: {run: x}}", `dir/outer.yaml:1:29: task "b" needs "mine", which is not in this included file`},
		{"include: huge.yaml", "dir/huge.yaml:1:1: the file has 1048577 bytes, and at most 1048576 are read"},
		{"include: on-done.yaml\non: {done: {run: x}}", `x.yaml:3:6: the task "on done" has the name of the one`},
		{"include: ok.yaml\ntasks: {b: {run: x, needs: [aa]}}", `did you mean "a"?`},
	} {
		_, err := include("name: x\n"+c.src, files)
		e, ok := errors.AsType[*pipeline.Error](err)
		if !ok {
			t.Errorf("%.60s is accepted, want %q (%v)", c.src, c.says, err)
			continue
		}
		if got := e.Format("dir/x.yaml", []byte("name: x\n"+c.src)); !strings.Contains(got, c.says) {
			t.Errorf("%.60s: want %q in\n%s", c.src, c.says, got)
		}
	}
	if _, err := pipeline.Parse([]byte("name: x\ninclude: ok.yaml")); err == nil || !strings.Contains(err.Error(), "no other file is read") {
		t.Errorf("Parse reads an included file: %v", err)
	}
	// Mistakes of both files are reported, the main file's first.
	_, err := include("name: x\ninclude: sub/slip.yaml\ntasks: {c: {rnu: x}}", files)
	if want := "line 3, column 13: "; err == nil || !strings.HasPrefix(err.Error(), "line 3, column ") || !strings.Contains(err.Error(), "\nsub/slip.yaml, line 3, column 7: ") {
		t.Errorf("want %q and that of the included file in:\n%v", want, err)
	}
	p, err := include("name: x\ninclude: warns.yaml", files)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Warnings.Format("dir/x.yaml", nil); !strings.HasPrefix(got, "dir/warns.yaml:1:25: warning: $HOME") {
		t.Errorf("the warnings are:\n%s", got)
	}
}
