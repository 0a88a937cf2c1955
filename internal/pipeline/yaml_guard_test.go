package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline"
)

// hostile has inputs for each guard. Without it, most keep the parser busy for
// minutes or take gigabytes.
func hostile() map[string]struct{ src, want string } {
	const n = pipeline.MaxSize / 4
	repeat := func(s string) string { return strings.Repeat(s, n/len(s)) }
	upTo := func(size int, format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	count := func(format string) string { return upTo(n, format) }
	deep := func() string {
		var b strings.Builder
		for i := range 1000 {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	aliases := func() string {
		var b strings.Builder
		b.WriteString("name: a\ntasks:\n  a:\n    type: a.b.c.v1\n    input:\n    - &a0 [x]\n")
		for i := range 300 {
			fmt.Fprintf(&b, "    - &a%d [*a%d]\n", i+1, i)
		}
		return b.String()
	}
	return map[string]struct{ src, want string }{
		"deep aliases":           {aliases(), "nests deeper than 128 levels"},
		"brackets":               {repeat("["), "nested deeper"},
		"closed brackets":        {strings.Repeat("[", n/2) + strings.Repeat("]", n/2), "nested deeper"},
		"braces":                 {repeat("{a: "), "nested deeper"},
		"dashes":                 {repeat("- "), "nested deeper"},
		"indentation":            {deep(), "nested deeper"},
		"anchors":                {repeat("&a "), "two anchors"},
		"tags":                   {repeat("!a "), "is a tag"},
		"question marks":         {repeat("? "), `after "?"`},
		"keys":                   {count("a%d: 1\n"), "more keys in one mapping"},
		"keys and lists":         {count("a%d:\n- x\n"), "more keys in one mapping"},
		"keys without value":     {count("a%d:\n"), "without a value"},
		"entries without value":  {repeat("-\n"), "without a value"},
		"words in braces":        {"{" + count("a%d, ") + "}", "without a value"},
		"long key":               {strings.Repeat("k", n/2) + ":\n" + upTo(n/2, " a%d: 1\n"), "below long keys"},
		"tabs in quotes":         {`a: "` + repeat("\t") + `"`, "too many tabs"},
		"empty lines in a block": {"a: |\n  x" + repeat("\n"), "empty lines in a row"},
		"arrows":                 {repeat("<"), "times < in a row"},
		"documents":              {repeat("---\na: 1\n"), "second document"},
		"aliases":                {"a: &a " + strings.Repeat("x", 200) + "\nb: [" + repeat("*a, ") + "]", "aliases of this file add"},
		"long alias":             {"a: &a " + strings.Repeat("x", n/2) + "\nb: [" + strings.Repeat("*a, ", n/8) + "]", "aliases of this file add"},
		"copies of env":          {"name: a\nenv: {A: " + strings.Repeat("x", 10_000) + "}\ntasks: {" + upTo(100_000, "t%d: {run: a},\n") + "}", "would have a copy"},
		"too many tasks":         {"name: a\ntasks: {" + upTo(500_000, "t%d: {run: a},\n") + "}", "at most 10000 are allowed"},
		"a task that is large":   {"name: a\ntasks: {a: {run: " + strings.Repeat("x", 70_000) + "}}", "as it would be stored"},
		"too large":              {strings.Repeat("x", 10<<20), "at most 1048576 are read"},
	}
}

func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	for name, tc := range hostile() {
		e := mistakes(t, []byte(tc.src))
		found := false
		for _, p := range e.Problems {
			found = found || strings.Contains(p.Message, tc.want)
		}
		if !found {
			t.Errorf("%s: want %q, got %.300v", name, tc.want, e)
		}
		for _, line := range strings.Split(e.Format("f", []byte(tc.src)), "\n") {
			if len(line) > 1000 {
				t.Errorf("%s: a line of the answer has %d bytes", name, len(line))
			}
		}
	}
}

// Valid files of any size pass the guards.
func TestLargeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	for name, src := range map[string]string{
		"10,000 tasks in braces": tasksOf(pipeline.MaxTasks, "  task-%05d: {run: echo %[1]d, needs: %s}\n"),
		"10,000 tasks in lines":  tasksOf(pipeline.MaxTasks, "  task-%05d:\n    run: echo %[1]d\n    needs:\n    - %s\n    timeout: 2m\n    env:\n      A: b\n"),
		"10,000 with defaults":   strings.Replace(tasksOf(pipeline.MaxTasks, "  task-%05d: {<<: *defaults, needs: %s}\n"), "tasks:\n", "tasks:\n  first: &defaults\n    run: echo\n    retry: {max_attempts: 3, base: 1s}\n    timeout: 10m\n    env: {A: b, C: d}\n", 1),
		"a script of 40 KiB":     "name: a\ntasks:\n  a:\n    run: |\n" + strings.Repeat("      echo some line of a long script\n\n", 1000),
	} {
		p, err := pipeline.Parse([]byte(src))
		if err != nil {
			t.Errorf("%s (%d bytes): %v", name, len(src), err)
		} else if n := len(p.Tasks); n != 1 && n < pipeline.MaxTasks {
			t.Errorf("%s: %d tasks", name, n)
		}
	}
}

// tasksOf returns up to MaxTasks tasks, each of which needs the task before it.
func tasksOf(n int, format string) string {
	var b strings.Builder
	b.WriteString("name: many\ntasks:\n")
	if strings.Contains(format, "*defaults") {
		n--
	}
	b.WriteString("  start: {run: echo}\n")
	before := "start"
	for i := range n - 1 {
		fmt.Fprintf(&b, format, i, before)
		before = fmt.Sprintf("task-%05d", i)
	}
	return b.String()
}

func TestMoreProblemsThanShown(t *testing.T) {
	t.Parallel()
	_, err := pipeline.Parse([]byte("name: a\ntasks: {" + strings.Repeat("a: {},", 100) + "}"))
	var e *pipeline.Error
	if !errors.As(err, &e) || len(e.Problems) != 20 || e.More != 80 || !strings.HasSuffix(e.Error(), "\nand 80 more") {
		t.Errorf("%v", err)
	}
}

func BenchmarkParse(b *testing.B) {
	for name, src := range map[string]string{
		"example":     string(files(b, "ok")["nightly-report"]),
		"1000 tasks":  tasksOf(1000, "  task-%05d:\n    run: echo %[1]d\n    needs: %s\n"),
		"10000 tasks": tasksOf(10_000, "  task-%05d:\n    run: echo %[1]d\n    needs: %s\n"),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := pipeline.Parse([]byte(src)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for name, tc := range hostile() {
		b.Run("hostile/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := pipeline.Parse([]byte(tc.src)); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
