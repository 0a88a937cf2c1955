package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files is a checkout that can be released as v0.1.0, after one that could not.
var files = map[string]string{
	"go.mod":                      "module github.com/goweaver/weaver\n\ngo 1.26.0\n",
	"otelweaver/go.mod":           "module github.com/goweaver/weaver/otelweaver\n\ngo 1.26.0\n\nreplace github.com/goweaver/weaver => ../\n\nrequire github.com/goweaver/weaver v0.1.0\n",
	"bench/go.mod":                "module github.com/goweaver/weaver/bench\n\ngo 1.26.0\n",
	"examples/build/hello/go.mod": "module example.com/hello\n\ngo 1.26.0\n",
	"internal/systemtest/go.mod":  "module github.com/goweaver/weaver/internal/systemtest\n\ngo 1.26.0\n",
	"tools/go.mod":                "module github.com/goweaver/weaver/tools\n\ngo 1.26.0\n",
	"CHANGELOG.md":                "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n- Tasks.\n",
	"README.md":                   "# Weaver\n",
}

func checkout(t *testing.T, changed map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []map[string]string{files, changed} {
		for name, text := range from {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "x"}} {
		if _, err := git(dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		version string // "": v0.1.0
		changed map[string]string
		git     []string
		want    string // a part of the only problem; "": none
	}{
		"all is right":        {},
		"a major version":     {version: "v2.0.0", changed: map[string]string{"CHANGELOG.md": "## [2.0.0] - 2026-12-01\n", "otelweaver/go.mod": files["bench/go.mod"]}, want: "ends in /v2"},
		"the version exists":  {git: []string{"tag", "otelweaver/v0.1.0"}, want: "tag otelweaver/v0.1.0 exists"},
		"a newer one exists":  {git: []string{"tag", "v0.10.0"}, want: "v0.10.0 is released and newer"},
		"a candidate exists":  {git: []string{"tag", "v0.1.0-rc.1"}},
		"a file is not there": {git: []string{"rm", "-q", "--cached", "README.md"}, want: "git status"},
		"a module requires another version": {
			changed: map[string]string{"otelweaver/go.mod": strings.ReplaceAll(files["otelweaver/go.mod"], "v0.1.0", "v0.0.0")},
			want:    "go mod edit -require=github.com/goweaver/weaver@v0.1.0 otelweaver/go.mod",
		},
		"a replacement of others": {changed: map[string]string{"go.mod": files["go.mod"] + "replace example.com/a => ./a\n"}, want: "go.mod replaces example.com/a"},
		"a new module":            {changed: map[string]string{"new/go.mod": "module github.com/goweaver/weaver/new\n"}, want: "new/go.mod is new"},
		"no heading":              {changed: map[string]string{"CHANGELOG.md": "## [Unreleased]\n\n- Tasks.\n"}, want: "no heading ## [0.1.0] - "},
		"no date":                 {changed: map[string]string{"CHANGELOG.md": "## [0.1.0] - soon\n"}, want: "ends in no date"},
		"what is not released":    {changed: map[string]string{"CHANGELOG.md": "## [Unreleased]\n\n- Tasks.\n\n## [0.1.0] - 2026-12-01\n"}, want: "below an empty ## [Unreleased]"},
		"an old text":             {changed: map[string]string{"README.md": "In your module (from the first release on; until then …)\n"}, want: "README.md says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := checkout(t, test.changed)
			if test.git != nil {
				if _, err := git(dir, test.git...); err != nil {
					t.Fatal(err)
				}
			}
			if test.version == "" {
				test.version = "v0.1.0"
			}
			problems, err := check(dir, test.version)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(problems, "\n"); test.want == "" && got != "" || test.want != "" && (len(problems) != 1 || !strings.Contains(got, test.want)) {
				t.Errorf("the problems are:\n%s\nwant one with %q", got, test.want)
			}
		})
	}
	if _, err := check(t.TempDir(), "0.1"); err == nil || !strings.Contains(err.Error(), "want the form v0.1.0") {
		t.Errorf("0.1: %v", err)
	}
}

// Every module of this repository is released, or known not to be.
func TestModulesAreKnown(t *testing.T) {
	found, err := modules("../..")
	if err != nil {
		t.Fatal(err)
	}
	for folder := range found {
		if !slices.Contains(released, folder) && !slices.Contains(kept, folder) {
			t.Errorf("%s/go.mod is in neither list", folder)
		}
	}
	if len(found) != len(released)+len(kept) {
		t.Errorf("%d modules, want %d", len(found), len(released)+len(kept))
	}
}
