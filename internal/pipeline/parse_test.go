package pipeline_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/pipeline"
)

var update = flag.Bool("update", false, "write the expected output of the files in testdata/bad anew")

// files returns the files of a directory of testdata, by name.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in testdata/%s: %v", dir, err)
	}
	all := make(map[string][]byte, len(names))
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".yaml")] = src
	}
	return all
}

// mistakes parses a file that must have mistakes.
func mistakes(t testing.TB, src []byte) *pipeline.Error {
	t.Helper()
	p, err := pipeline.Parse(src)
	var e *pipeline.Error
	if p != nil || !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("Parse = %+v, %v; want an *Error with problems", p, err)
	}
	return e
}

func parse(t testing.TB, src string) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Parse([]byte(src))
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, src)
	}
	return p
}

// The answer to testdata/bad/NAME.yaml is NAME.txt.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, src := range files(t, "bad") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := mistakes(t, src)
			checkShape(t, e, src)
			got := e.Format(name+".yaml", src)
			golden := filepath.Join("testdata", "bad", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the answer changed; if the new one is right, run go test -run TestMistakes -update\ngot:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// checkShape checks the properties that every answer of Parse has.
func checkShape(t testing.TB, e *pipeline.Error, src []byte) {
	t.Helper()
	lines := bytes.Count(src, []byte("\n")) + bytes.Count(src, []byte("\r")) + 1
	line, column := 0, 0
	for _, p := range e.Problems {
		if p.Message == "" || p.Line < 1 || p.Line > lines || p.Column < 1 || p.Length < 0 {
			t.Errorf("%+v has no message, or a place that the file has not", p)
		}
		if p.Line < line || p.Line == line && p.Column < column {
			t.Errorf("%d:%d comes after %d:%d", p.Line, p.Column, line, column)
		}
		line, column = p.Line, p.Column
	}
	if len(e.Problems) > 20 || e.More > 0 && len(e.Problems) < 20 {
		t.Errorf("%d problems, and %d more", len(e.Problems), e.More)
	}
	for _, l := range strings.Split(e.Format("FILE", src), "\n") {
		if n := utf8.RuneCountInString(l); n > 100 && strings.Contains(l, " | ") && !strings.HasPrefix(l, "FILE") && !strings.HasPrefix(l, "  ") {
			t.Errorf("a line of the source is printed %d wide: %s", n, l)
		}
	}
}

func TestGoodFiles(t *testing.T) {
	t.Parallel()
	for name, src := range files(t, "ok") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if p := parse(t, string(src)); len(p.Tasks) > 0 { // a foreach may have no values
				submit(t, p, pipeline.JobOptions{BaseDir: t.TempDir()})
			}
		})
	}
}
