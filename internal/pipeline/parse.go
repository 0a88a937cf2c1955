package pipeline

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// Parse reads a pipeline. Its error is an *Error with all mistakes, those of
// the content only when the file is YAML.
func Parse(src []byte) (*Pipeline, error) {
	if len(src) > MaxSize {
		return nil, &Error{Problems: []Problem{{
			Line: 1, Column: 1,
			Message: fmt.Sprintf("the file has %d bytes, and at most %d are read", len(src), MaxSize),
			Hint:    "keep data in files of their own, which the commands read",
		}}}
	}
	s := newSource(src)
	r := &reporter{src: s}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		r.add(s.whole(), "the file is UTF-16", "save it as UTF-8")
		return nil, r.err()
	}
	root := read(s, r)
	if root == nil {
		return nil, r.err()
	}
	d := &decoder{r: r}
	p := d.pipeline(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// read returns the tree of a source, or nil when a problem is reported.
func read(s *source, r *reporter) *node {
	if s.check(r); len(r.all) > 0 {
		return nil
	}
	tokens := lexer.Tokenize(s.text)
	if (&aligner{src: s, r: r}).align(tokens); len(r.all) > 0 {
		return nil
	}
	if tokens = (&guard{src: s, r: r}).pass(tokens); len(r.all) > 0 {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		syntaxProblem(r, err)
		return nil
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		what := "is empty"
		if strings.TrimSpace(s.text) != "" {
			what = "has nothing but comments"
		}
		r.add(s.whole(), "the file "+what, form)
		return nil
	}
	b := builder{r: r, anchors: make(map[string]*node)}
	root := b.build(file.Docs[0].Body, 0)
	if len(r.all) > 0 {
		return nil
	}
	return root
}

// form shows how a file looks.
const form = `write for example
    name: nightly-report
    tasks:
      fetch: {run: "curl -sf https://example.com/data.csv -o data.csv"}
      clean: {run: [python3, clean.py], needs: [fetch]}`
