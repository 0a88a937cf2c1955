package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline"
)

// warnings returns the warnings of a file: line, column, length, message; hint.
func warnings(p *pipeline.Pipeline) string {
	var b strings.Builder
	for _, w := range p.Warnings.Problems {
		fmt.Fprintf(&b, "%d:%d+%d %s; %s\n", w.Line, w.Column, w.Length, w.Message, w.Hint)
	}
	return b.String()
}

// A variable without expansion has a warning at its place, with a hint to a place
// with expansion.
func TestLiteralVariables(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"a: {http: {url: 'http://h/', headers: {Authorization: Bearer $TOKEN}}}": `3:64+6 $TOKEN in "Authorization" of "headers" of http of task "a" is sent as it is written; write headers_env: {Authorization: Bearer TOKEN}: the worker sends the value of its variable TOKEN`,
		"a: {http: {url: 'http://h/', headers: {A: '${KEY}:x'}}}":                `3:46+6 ${KEY} in "A" of "headers" of http of task "a" is sent as it is written; write headers_env: {A: KEY}: the worker sends the value of its variable KEY`,
		"a: {http: {url: 'http://h/${DAY}'}}":                                    `3:29+6 ${DAY} in "url" of http of task "a" is sent as it is written; let the shell make the call, as in run: curl "…$DAY", with inherit_env: [DAY], or secret_env: [DAY] for a secret; of a request only headers_env takes variables`,
		"a: {http: {url: 'http://h/', body: day $DAY}}":                          `3:42+4 $DAY in "body" of http of task "a" is sent as it is written; let the shell`,
		"a: {http: {url: 'http://h/', json: {a: [1, {b: $DAY}]}}}":               `3:50+4 $DAY in "json" of http of task "a" is sent as it is written; let the shell`,
		"a: {run: ls, env: {KEY: $KEY}}":                                         `3:27+4 $KEY in "KEY" of "env" of task "a" is passed on as it is written; write inherit_env: [KEY] to take the worker's variable over, or secret_env: [KEY] for a secret; or let the shell set it, in a text: run: export KEY="…$KEY"`,
		"a: {run: [echo, hello, '$NAME']}":                                       `3:27+5 $NAME in "run" of task "a" is passed on as it is written, because no shell reads a list; write a text, which the shell runs: run: "… $NAME"; it sees env, inherit_env and secret_env`,
		"a:\n    run: ls\n    dir: $HOME/x\n":                                    `5:10+5 $HOME in "dir" of task "a" is taken as it is written; write the path itself, or let the shell go there, in a text: run: cd "$HOME/…" && …`,
		"a:\n    run: ls\n    env:\n      A: |\n        x\n        y ${B}\n":     `8:11+4 ${B} in "A" of "env" of task "a" is passed on`,
	} {
		got := warnings(parse(t, "name: n\ntasks:\n  "+src+"\n"))
		if !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s:\n%swant\n%s", src, got, want)
		}
	}
	top := parse(t, "name: n\nenv: &env {A: $B}\ndir: ${D}\ntasks:\n  a: {run: ls, env: *env}\n  b: {run: ls, env: {<<: *env}}\n")
	if got := warnings(top); strings.Count(got, "\n") != 2 || !strings.Contains(got, `2:15+2 $B in "A" of "env" of the pipeline`) || !strings.Contains(got, `3:6+4 ${D} in "dir" of the pipeline`) {
		t.Errorf("of the pipeline, and once for an alias:\n%s", got)
	}
}

// Probable literals have no warning.
func TestNoLiteralVariables(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`{run: "echo $HOME ${X}"}`,
		`{run: [sh, -c, "echo $HOME"]}`,
		`{run: [docker, exec, c, /bin/bash, -c, "echo $HOME"]}`,
		`{run: [awk, "{print $NF}", f]}`,
		`{run: [ls], env: {A: "100$", B: "$1", C: "pa$word", D: "$$", E: "${", F: "a$5B"}}`,
		`{http: {url: "http://h/", json: {"$ref": "$set", price: "$5"}}}`,
		`{type: acme.of.another.v1, input: {a: $HOME}}`,
	} {
		if got := warnings(parse(t, "name: n\ntasks:\n  a: "+src+"\n")); got != "" {
			t.Errorf("%s:\n%s", src, got)
		}
	}
}

// At most twenty warnings are shown.
func TestManyWarnings(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: n\ntasks:\n  a:\n    run: ls\n    env:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "      A%d: $B\n", i)
	}
	p := parse(t, b.String())
	equal(t, "shown", len(p.Warnings.Problems), 20)
	equal(t, "more", p.Warnings.More, 30)
	if got := p.Warnings.Format("f.yaml", []byte(b.String())); !strings.HasPrefix(got, "f.yaml:6:11: warning: $B in") || !strings.HasSuffix(got, "and 30 more warnings\n") {
		t.Errorf("%s", got)
	}
}
