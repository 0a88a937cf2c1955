package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goweaver/weaver/cli"
)

// Patterns match files in any folder, as in a shell.
func TestGlobFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), `a [x] {b} *`)
	for _, name := range []string{"b.csv", "a.csv", ".hidden.csv", "sub/c.csv", ".git/d.csv", "folder.csv/e.txt", "[x].txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"*.csv":                      {"a.csv", "b.csv"},
		"./*.csv":                    {"a.csv", "b.csv"},
		"*/*.csv":                    {"sub/c.csv"},
		".git/*.csv":                 {".git/d.csv"},
		".*.csv":                     {".hidden.csv"},
		"[ab].csv":                   {"a.csv", "b.csv"},
		`\[x].txt`:                   {"[x].txt"},
		"sub/../*.csv":               {"a.csv", "b.csv"},
		"none/*":                     nil,
		filepath.Join("..", "*/*.y"): nil,
	} {
		got, err := cli.GlobFiles(dir, pattern)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", pattern, got, err, want)
		}
	}
	// A parent folder keeps its dots; an absolute pattern returns absolute paths.
	if got, err := cli.GlobFiles(filepath.Join(dir, "sub"), "../a.csv"); err != nil || !slices.Equal(got, []string{filepath.Join("..", "a.csv")}) {
		t.Errorf("%q, %v", got, err)
	}
	plain := t.TempDir()
	if err := os.WriteFile(filepath.Join(plain, "x.csv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := cli.GlobFiles(dir, filepath.Join(plain, "*.csv")); err != nil || !slices.Equal(got, []string{filepath.Join(plain, "x.csv")}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := cli.GlobFiles(dir, "[a-"); err == nil {
		t.Error("a bad pattern is accepted")
	}
}
