package sqltext

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packages writes one file per package and returns their folders.
func packages(t *testing.T, texts ...string) (dirs []string) {
	t.Helper()
	for _, text := range texts {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// Two statements of one name are an error, so that neither is lost.
func TestNoTwoStatementsHaveOneName(t *testing.T) {
	t.Parallel()
	for what, texts := range map[string][]string{
		"of two packages": {"const sqlA = `SELECT 1`", "var sqlA = `SELECT 2`"},
		"of one package":  {"const sqlA = `SELECT 1`\nfunc f() { const sqlA = `SELECT 2`; _ = sqlA }"},
		"one of a list":   {"const sqlA = `SELECT 1`", "var sqlA = newIDSQL(f)"},
	} {
		_, err := read(nil, packages(t, texts...)...)
		if err == nil || !strings.Contains(err.Error(), "sqlA is the name of a statement at ") {
			t.Errorf("two statements of one name, %s, were read: %v", what, err)
		}
	}
}

// A statement uses the names of its own package and the exported names of other packages.
func TestEachPackageHasItsNames(t *testing.T) {
	t.Parallel()
	dirs := packages(t, "const (\nfrom = `a`\nsqlA = `SELECT 1 FROM ` + from\n)", "const (\nfrom = `b`\nsqlB = `SELECT ` + x.List + ` FROM ` + from\n)", "const List = `2`")
	got, err := read(nil, dirs...)
	want := map[string]string{"sqlA": "SELECT 1 FROM a", "sqlB": "SELECT 2 FROM b"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("read %v, %v, want %v", got, err, want)
	}
	for what, texts := range map[string][]string{
		"of another package":      {"const sqlA = `SELECT ` + from", "const from = `b`"},
		"exported by two of them": {"const sqlA = `SELECT ` + x.List", "const List = `1`", "const List = `2`"},
		"that a call returns":     {"var sqlA = `SELECT ` + f()"},
	} {
		got, err := read(nil, packages(t, texts...)...)
		if err == nil || !strings.Contains(err.Error(), "the text of sqlA is not found") || len(got) > 0 {
			t.Errorf("a part %s: %v, %v", what, got, err)
		}
	}
}
