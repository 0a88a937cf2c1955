package vet_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/vet"
)

func TestCheck_TypesThatNoProgramHandles(t *testing.T) {
	t.Parallel()
	const nothing = "no package creates a handler for it"
	for name, tc := range map[string]struct {
		patterns []string
		want     []string // file, type and message
	}{
		"two programs": {[]string{"./worker", "./web"}, []string{
			"tasks/tasks.go lonely defined, and " + nothing, "web/main.go enqueued enqueued, and " + nothing, "web/main.go named enqueued, and " + nothing,
			"web/main.go orphan enqueued, and " + nothing, "web/main.go unhandled enqueued, and " + nothing, "worker/main.go called enqueued, and " + nothing,
		}},
		"a handler that no program imports": {[]string{"./worker", "./orphan"}, []string{
			"tasks/tasks.go enqueued defined, and " + nothing, "tasks/tasks.go lonely defined, and " + nothing,
			"tasks/tasks.go orphan defined, and its handler is created in github.com/goweaver/weaver/internal/vet/testdata/orphan, which no program here imports",
			"tasks/tasks.go unhandled defined, and " + nothing, "worker/main.go called enqueued, and " + nothing,
		}},
		"no program": {[]string{"./orphan"}, []string{
			"tasks/tasks.go called defined, and " + nothing, "tasks/tasks.go enqueued defined, and " + nothing, "tasks/tasks.go field defined, and " + nothing,
			"tasks/tasks.go handled defined, and " + nothing, "tasks/tasks.go lonely defined, and " + nothing, "tasks/tasks.go unhandled defined, and " + nothing,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := vet.Check(t.Context(), "testdata", tc.patterns...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range r.Findings {
				_, said, _ := strings.Cut(f.Message, " is ")
				said, _, _ = strings.Cut(said, ": ")
				got = append(got, filepath.ToSlash(f.File)+" "+strings.TrimSuffix(strings.TrimPrefix(f.Type, "vet.test."), ".v1")+" "+said)
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestCheck_Mistakes(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{"./missing": "missing", "./tasks/tasks.txt": "tasks.txt", "": "no Go files"} {
		if _, err := vet.Check(t.Context(), "testdata", pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", pattern, err, want)
		}
	}
	if _, err := vet.Check(t.Context(), "testdata/none", "."); err == nil {
		t.Error("a folder that does not exist is checked")
	}
}

func TestCheck_WithoutGoCommand(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := vet.Check(t.Context(), "testdata", "./web"); err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("the error is %v, want one that says what to install", err)
	}
}
