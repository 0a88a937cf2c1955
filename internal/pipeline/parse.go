package pipeline

import (
	"bytes"
	"fmt"
)

// Parse reads a pipeline in four steps. [tokenize] turns the text into tokens with
// places. [guard] refuses tokens that the YAML parser cannot take. [parseTree]
// builds nodes from the parser's result. [decoder] fills a Pipeline from them.
// Parse stops after a step that reports a mistake.
//
// Parse returns an [*Error] with all mistakes of that step.
func Parse(src []byte) (*Pipeline, error) { return ParseGiven(src, Given{}) }

// Given holds the inputs of a run besides the file.
type Given struct {
	Types  Types
	Params map[string]string // values of params, as text

	// Partial accepts missing params: a text that names one stays as written. Such a
	// pipeline can be inspected, not run.
	Partial bool

	// BaseDir is as in JobOptions. Glob lists the files in an absolute directory whose
	// names match a pattern of path/filepath, relative to the directory. Without Glob,
	// foreach_glob finds no files.
	BaseDir string
	Glob    func(dir, pattern string) ([]string, error)

	// Read reads included files. If nil, include is an error.
	Read ReadFile
}

// newDecoder returns a decoder for one file.
func newDecoder(r *reporter, given Given) *decoder {
	return &decoder{
		r: r, warnings: &reporter{src: r.src, file: r.file, single: true}, p: &Pipeline{}, given: given,
		places: make(map[string]spot), needs: make(map[string][]field), shapes: make(map[string]*shape),
		nodes: make(map[string]struct{}), included: make(map[string]string),
	}
}

// ParseGiven is Parse with values for params, types and files.
func ParseGiven(src []byte, given Given) (*Pipeline, error) {
	r := &reporter{src: newSource(src)}
	d := newDecoder(r, given)
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

// readTree returns the tree of a text, or nil after it reports a problem.
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

// form is an example of a whole file.
const form = `write for example
    name: nightly-report
    tasks:
      fetch: {run: "curl -sf https://example.com/data.csv -o data.csv"}
      clean: {run: [python3, clean.py], needs: [fetch]}`
