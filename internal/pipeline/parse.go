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
func ParseWith(src []byte, types Types) (*Pipeline, error) { return ParseFile(src, types, nil) }

// ParseFile is ParseWith for a program that reads the files that this one
// includes; with a nil read it may include none.
func ParseFile(src []byte, types Types, read ReadFile) (*Pipeline, error) {
	r := &reporter{src: newSource(src)}
	d := &decoder{r: r, warnings: &reporter{src: r.src, single: true}, p: &Pipeline{}, types: types, read: read, included: make(map[string]string)}
	if root := readTree(src, r); root != nil {
		d.pipeline(root)
	}
	e, w := &Error{sources: make(map[string][]byte)}, &d.p.Warnings
	w.sources = e.sources
	for _, of := range append([]*decoder{d}, d.others...) {
		e.add(of.r)
		problems, more := of.warnings.sorted()
		w.Problems, w.More = append(w.Problems, problems...), w.More+more
		e.sources[of.r.file] = []byte(of.r.src.text)
	}
	if len(e.Problems) > 0 {
		return nil, e
	}
	return d.p, nil
}

// readTree makes the tree of a text. It returns nil when it reports a problem.
func readTree(src []byte, r *reporter) *node {
	if len(src) > MaxSize {
		r.add(r.src.whole(), fmt.Sprintf("the file has %d bytes, and at most %d are read", len(src), MaxSize), "keep data in files of their own, which the commands read")
		return nil
	}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		r.add(r.src.whole(), "the file is UTF-16", "save it as UTF-8")
		return nil
	}
	return parseTree(r.src, r)
}

// form shows how a file looks.
const form = `write for example
    name: nightly-report
    tasks:
      fetch: {run: "curl -sf https://example.com/data.csv -o data.csv"}
      clean: {run: [python3, clean.py], needs: [fetch]}`
