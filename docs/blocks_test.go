package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lines returns the lines of a text without indentation and alignment.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

// TestGoBlocks requires that each Go block of README.md and of this folder is part of a Go
// file that is compiled, or a whole program, which other tests build and run.
func TestGoBlocks(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, pattern := range []string{"*_test.go", "../store/postgres/example_doc_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || files == nil {
			t.Fatal(pattern, files, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.WriteString(lines(string(raw)))
		}
	}
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range append(pages, "../README.md") {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
			blocks++
			if !strings.HasPrefix(block[1], "package main\n") && !strings.Contains(code.String(), lines(block[1])) {
				t.Errorf("%s: this block is in no *_test.go file of docs; add it there, or copy the code from there:\n%s", page, block[1])
			}
		}
	}
	if blocks < 20 {
		t.Errorf("found %d blocks: has the form of the pages changed?", blocks)
	}
}

// TestLinks requires that each relative link of README.md and of this folder leads to a file.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	adrs, err := filepath.Glob("adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md"), adrs...) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllString(string(raw), "")
		for _, link := range regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s: link %s: %v", page, link[1], err)
			}
		}
	}
}
