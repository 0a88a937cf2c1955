package archtest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const coverageFile = "docs/coverage.md"

// namedTest matches the name of a test in coverageFile: `package: TestName`, with a subtest after a slash, or
// `store/storetest: Suite/case`.
var namedTest = regexp.MustCompile("`([a-z][a-z0-9_./]*): ([A-Z][A-Za-z0-9_]*)(?:/([^`]+))?`")

// otherShown matches the reason why a requirement names no test.
var otherShown = regexp.MustCompile(`not built|left out by intent|no test yet|chapters? \d|phase \d`)

// anyTest matches any text that looks like the name of a test.
var anyTest = regexp.MustCompile(`\b(?:Test|Example|Fuzz)[A-Z]\w*`)

// sessions maps a test of internal/clitest to the folder of its sessions.
var sessions = map[string]string{
	"TestSessions":         "internal/clitest/testdata/",
	"TestPostgresSessions": "internal/clitest/testdata/postgres/",
}

// Every test named in docs/coverage.md exists, and every requirement there names a test or the reason for having none.
func TestCoverageNamesTests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(repoRoot, coverageFile))
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string) // of all Go files of a package
	for _, f := range goFiles(t) {
		texts[path.Dir(f.path)] += f.text
	}
	count, requirements := 0, false
	for i, line := range strings.Split(string(raw), "\n") {
		switch { // tests are named in tables
		case !strings.HasPrefix(line, "|"):
			requirements = false
			continue
		case strings.HasPrefix(line, "| Requirement |"):
			requirements = true
			continue
		case strings.HasPrefix(line, "|---"):
			continue
		}
		at := fmt.Sprintf("%s:%d", coverageFile, i+1)
		tests := namedTest.FindAllStringSubmatch(line, -1)
		if _, shown, _ := strings.Cut(line, " | "); requirements && len(tests) == 0 && !otherShown.MatchString(shown) {
			t.Errorf("%s: no test: name one, or write \"not built\"", at)
		}
		for _, m := range tests {
			count++
			if problem := missing(texts, m[1], m[2], m[3]); problem != "" {
				t.Errorf("%s: %s: %s: name the test that shows the line now, or move the line to the list of what is not built", at, m[0], problem)
			}
		}
		if name := anyTest.FindString(namedTest.ReplaceAllString(line, "")); name != "" {
			t.Errorf("%s: %s: write it as `package: %s` in backticks, the root package as `weaver: …`", at, name, name)
		}
	}
	if count < 100 {
		t.Errorf("%s names %d tests: was its form changed?", coverageFile, count)
	}
}

// missing describes the missing part of a test name, or returns "".
func missing(texts map[string]string, pkg, name, sub string) string {
	dir := pkg
	if pkg == "weaver" {
		dir = "."
	}
	text, ok := texts[dir]
	if !ok {
		return "there is no such package"
	}
	if pkg == "store/storetest" {
		if !strings.Contains(casesOf(text, name), `{"`+sub+`", func(`) {
			return "the suite has no such case"
		}
		return ""
	}
	if !strings.Contains(text, "\nfunc "+name+"(") {
		return "the package has no such function"
	}
	if dir, ok := sessions[name]; ok && pkg == "internal/clitest" && sub != "" {
		if _, err := fs.Stat(os.DirFS(repoRoot), dir+sub+".txtar"); err != nil {
			return err.Error()
		}
		return ""
	}
	if sub != "" && !strings.Contains(text, `"`+sub) {
		return "the package has no such subtest"
	}
	return ""
}

// casesOf returns the table of a suite's cases in the Go files of store/storetest, or "" if there is no such suite.
func casesOf(text, suite string) string {
	_, rest, _ := strings.Cut(text, `{"`+suite+`", `)
	table, _, ok := strings.Cut(rest, "}")
	if !ok {
		return ""
	}
	_, rest, _ = strings.Cut(text, "var "+table+" = []testCase{\n")
	cases, _, _ := strings.Cut(rest, "\n}\n")
	return cases
}
