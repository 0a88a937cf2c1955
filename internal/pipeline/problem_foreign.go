package pipeline

import (
	"bytes"
	"strings"

	"github.com/goweaver/weaver/internal/typo"
)

// A path may lead to a secret file instead of a pipeline. Messages about a file
// that is not a pipeline therefore quote nothing of it.

// looksLikePipeline reports whether a text has a pipeline key at its outermost
// level: tasks or a synonym, or in a main file another of the first keys.
func looksLikePipeline(src []byte, included bool) bool {
	text := strings.TrimPrefix(string(src), "\ufeff")
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '{' || r == ',' || r == '}' }) {
			if key, _, found := strings.Cut(part, ":"); found && firstKey(key, included) {
				return true
			}
		}
		return false
	}
	outermost := -1 // spaces before keys of the outermost level
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if begin := line[indent:]; strings.TrimSpace(begin) == "" || begin[0] == '#' || strings.HasPrefix(begin, "---") || begin[0] == '%' {
			continue
		}
		if outermost < 0 {
			outermost = indent
		}
		if indent != outermost {
			continue
		}
		key, rest, found := strings.Cut(line, ":")
		if found && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) && firstKey(key, included) {
			return true
		}
	}
	return false
}

// firstKey reports whether a key, or a similar one, identifies a pipeline.
func firstKey(key string, included bool) bool {
	if key = strings.ToLower(strings.Trim(key, " \t\r\n\"'")); len(key) < 3 {
		return false
	}
	if pipelineOthers[key] == "tasks" || typo.Distance(key, "tasks", 2) < 3 {
		return true
	}
	return !included && (pipelineOthers[key] == "include" || typo.Distance(key, "include", 2) < 3 || typo.Distance(key, "name", 1) < 2)
}

// isForeign reports whether messages may not quote a text. Empty, too large and
// UTF-16 texts have other messages, which quote nothing.
func isForeign(src []byte, included bool) bool {
	wide := bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff"))
	return len(bytes.TrimSpace(src)) > 0 && len(src) <= MaxSize && !wide && !looksLikePipeline(src, included)
}

// Foreign returns the [*Error] for a text that is not a pipeline, without a
// quotation. It returns nil for a text that looks like a pipeline.
func Foreign(src []byte) error {
	if !isForeign(src, false) {
		return nil
	}
	r := &reporter{src: newSource(src)}
	r.add(r.src.whole(), "the file is not a pipeline: no line begins with tasks: or another key of a pipeline", form)
	e := &Error{}
	e.add(r)
	return e
}
