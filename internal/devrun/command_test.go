package devrun_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/devrun"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for command, want := range map[string]devrun.Plan{
		"go run .":                          {dir, dir, []string{""}, []string{"build", "-buildvcs=false", "."}},
		"go run ./cmd/app serve -v":         {dir, at("cmd/app"), []string{"", "serve", "-v"}, []string{"build", "-buildvcs=false", "./cmd/app"}},
		"go run -race -tags a,b ./app x":    {dir, at("app"), []string{"", "x"}, []string{"build", "-buildvcs=false", "-race", "-tags", "a,b", "./app"}},
		"go run -tags=a --ldflags -s . .go": {dir, dir, []string{"", ".go"}, []string{"build", "-buildvcs=false", "-tags=a", "--ldflags", "-s", "."}},
		"go run sub/a.go sub/b.go x":        {dir, at("sub"), []string{"", "x"}, []string{"build", "-buildvcs=false", "sub/a.go", "sub/b.go"}},
		"go run -C sub ./app":               {at("sub"), at("sub/app"), []string{""}, []string{"build", "-buildvcs=false", "./app"}},
		"go run example.com/app":            {dir, dir, []string{""}, []string{"build", "-buildvcs=false", "example.com/app"}},
		// Commands that run unchanged.
		"go run example.com/app@v1.2.3": {dir, dir, []string{"go", "run", "example.com/app@v1.2.3"}, nil},
		"go run -exec time .":           {dir, dir, []string{"go", "run", "-exec", "time", "."}, nil},
		"go test ./...":                 {dir, dir, []string{"go", "test", "./..."}, nil},
		"make run":                      {dir, dir, []string{"make", "run"}, nil},
	} {
		got, err := devrun.PlanOf(dir, strings.Fields(command)...)
		if err != nil || got.Dir != want.Dir || got.Folder != want.Folder || !slices.Equal(got.Argv, want.Argv) || !slices.Equal(got.Build, want.Build) {
			t.Errorf("%s: %+v, %v; want %+v", command, got, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for command, want := range map[string]string{
		"":                "no program to run: write it after --",
		"go run":          "go run names no package",
		"go run -race":    "go run -race names no package",
		"no-such-program": `the program "no-such-program" cannot be run`,
		"./missing":       `missing" cannot be run`,
	} {
		_, err := devrun.New(devrun.Config{Dir: dir, Command: strings.Fields(command)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", command, err, want)
		}
	}
	if _, err := devrun.New(devrun.Config{Dir: filepath.Join(dir, "none"), Command: []string{"go", "run", "."}}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("in a folder that is not there: %v", err)
	}
}

// write creates a file and its missing parent folders.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsWatched(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"m/go.mod", "m/go.sum", "m/main.go", "m/cmd/app/app.go", "m/internal/a/a.go",
		"m/main_test.go", "m/README.md", "m/.hidden.go", "m/.git/x.go", "m/_old/x.go", "m/vendor/v/v.go",
		"m/testdata/t.go", "m/web/node_modules/n.go", "m/other/go.mod", "m/other/o.go",
		"plain/a.go", "plain/below/b.go",
	} {
		write(t, filepath.Join(dir, name), "x")
	}
	if err := os.Symlink(filepath.Join(dir, "plain", "a.go"), filepath.Join(dir, "m", "linked.go")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in      string
		command []string
		root    string
		want    []string
	}{
		{"m", []string{"go", "run", "./cmd/app"}, "m", []string{"cmd/app/app.go", "go.mod", "go.sum", "internal/a/a.go", "linked.go", "main.go"}},
		{".", []string{"go", "run", "m/main.go"}, "m", []string{"cmd/app/app.go", "go.mod", "go.sum", "internal/a/a.go", "linked.go", "main.go"}},
		{"m", []string{"go", "run", "-C", "other", "."}, "m/other", []string{"go.mod", "o.go"}},
		{"plain", []string{"go", "run", "a.go"}, "plain", []string{"a.go"}},
	} {
		root, deep, err := devrun.RootOf(filepath.Join(dir, c.in), c.command...)
		if err != nil {
			t.Fatal(err)
		}
		got := devrun.Watched(root, deep)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if root != filepath.Join(dir, c.root) || !slices.Equal(got, c.want) {
			t.Errorf("%q in %s watches %q in %s, want %q in %s", c.command, c.in, got, root, c.want, c.root)
		}
	}
}
