package pipeline

import (
	"bytes"
	"fmt"
)

// Parse reads a pipeline in four steps: [tokenize] turns the text into tokens
// with places, [guard] refuses those that the YAML parser cannot take,
// [parseTree] makes nodes of what the parser returns, and [decoder] fills a
// Pipeline from them. A step that reports a mistake is the last one.
//
// Parse returns an [*Error] with all mistakes that the step found.
func Parse(src []byte) (*Pipeline, error) { return ParseWith(src, Types{}) }

// ParseWith is Parse for a program that knows task types.
func ParseWith(src []byte, types Types) (*Pipeline, error) {
	if len(src) > MaxSize {
		return nil, &Error{Problems: []Problem{{
			Line: 1, Column: 1,
			Message: fmt.Sprintf("the file has %d bytes, and at most %d are read", len(src), MaxSize),
			Hint:    "keep data in files of their own, which the commands read",
		}}}
	}
	r := &reporter{src: newSource(src)}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		r.add(r.src.whole(), "the file is UTF-16", "save it as UTF-8")
		return nil, r.err()
	}
	d := decoder{r: r, warnings: &reporter{src: r.src, single: true}, p: &Pipeline{}, types: types}
	if root := parseTree(r.src, r); root != nil {
		d.pipeline(root)
	}
	if r.failed() {
		return nil, r.err()
	}
	d.p.Warnings.Problems, d.p.Warnings.More = d.warnings.sorted()
	return d.p, nil
}

// form shows how a file looks.
const form = `write for example
    name: nightly-report
    tasks:
      fetch: {run: "curl -sf https://example.com/data.csv -o data.csv"}
      clean: {run: [python3, clean.py], needs: [fetch]}`
