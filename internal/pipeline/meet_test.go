package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline"
)

// mistakeOf parses a file with exactly one mistake, and returns its message.
func mistakeOf(t *testing.T, src string) string {
	t.Helper()
	_, err := pipeline.ParseGiven([]byte(src), pipeline.Given{Partial: true, Glob: noFiles})
	if err == nil {
		t.Fatalf("no mistake in:\n%s", src)
	}
	return err.Error()
}

func noFiles(string, string) ([]string, error) { return nil, nil }

// Combinations of keys.
func TestKeysThatMeet(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		// A file without missing params is checked as for a run.
		"tasks: {a: {run: x}, b: {http: {url: 'https://{{.tasks.a.stdout}}/x'}, needs: [a]}}": "stands where it would choose the host",
		// The values visible to a hook depend on its key.
		"tasks: {a: {run: x}}\non: {failure: {run: [x, '{{.tasks.a.exit_code}}']}}": "may not be there when this runs",
		// Shell code is refused in every spelling of the option.
		"tasks: {a: {run: [sh, -ce, 'echo {{.item}}'], foreach: [b]}}":            "would become a part of the code that sh runs",
		"tasks: {a: {run: [bash, -cx, 'echo {{.item}}'], foreach: [b]}}":          "would become a part of the code that bash runs",
		"tasks: {a: {run: [python3, '-cprint({{.item}})'], foreach: [b]}}":        "would become a part of the code that python3 runs",
		"tasks: {a: {run: [ssh, host, 'echo {{.item}}'], foreach: [b]}}":          "would become a part of the code that ssh runs",
		"tasks: {a: {run: [sh, -c, 'echo {{[\"item\"]}}'], foreach: [b]}}":        "would become a part of the code that sh runs",
		"tasks: {a: {run: x, foreach: [b]}, c: {run: x, needs: ['a[b]']}}":        "write a: that is all of its nodes",
		"tasks: {a: {run: x, foreach: [" + strings.Repeat("b", 5000) + "]}}":      "has 5000 bytes, and at most 4096 are allowed",
		"tasks: {a: {run: x, matrix: {" + lists(11) + "}}}":                       "has more than 10 lists",
		"tasks: {a: {run: x}, b: {run: [x, '{{.tasks.a.json.-1}}'], needs: [b]}}": "needs itself",
	} {
		if got := mistakeOf(t, "name: n\n"+src); !strings.Contains(got, want) {
			t.Errorf("%.200s: %q, want %q", src, got, want)
		}
	}
	for _, src := range []string{
		"tasks: {a: {run: x, foreach_glob: '*.no'}}\non: {failure: {run: x}}",
		"tasks: {a: {run: x, foreach_glob: '*.no'}, b: {run: x, needs: [a], if: failed}, c: {run: [x, '{{.tasks.b.exit_code}}'], needs: [b], if: done}}",
		"tasks: {a: {run: [sh, -c, 'echo \"$1\"', sh, '{{.item}}'], foreach: [b]}}",
	} {
		if _, err := pipeline.ParseGiven([]byte("name: n\n"+src), pipeline.Given{Glob: noFiles}); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func lists(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%d: [a], ", i)
	}
	return b.String()
}

// The digest covers the needs of an included task whose nodes depend on files. A
// file of the same folder does not change a task's work.
func TestDigestOfIncludedGlobs(t *testing.T) {
	t.Parallel()
	digest := func(needs string) string {
		p, err := pipeline.ParseGiven([]byte("name: n\ninclude: in.yaml\ntasks: {z: {run: x}}"), pipeline.Given{Glob: noFiles, Read: func(string) ([]byte, error) {
			return []byte("tasks: {a: {run: x}, b: {run: x}, c: {run: x, foreach_glob: '*.no', needs: [" + needs + "]}}"), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest()
	}
	if digest("a") == digest("b") {
		t.Error("other needs of an included task are no change")
	}
}
