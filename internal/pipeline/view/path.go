package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
)

// criticalPath returns the chain of tasks that determined the end of a job: the
// task that finished last, before it the need that finished last, and so on. In
// place of a task that never started stand the needs that ended it.
func criticalPath(tasks []weaver.TaskInfo, needs map[string][]string) []*weaver.TaskInfo {
	ran := make(map[string]*weaver.TaskInfo, len(tasks))
	var last *weaver.TaskInfo
	later := func(t, than *weaver.TaskInfo) bool {
		return t != nil && (than == nil || t.FinishedAt.After(than.FinishedAt))
	}
	for i := range tasks {
		t := &tasks[i]
		if t.StartedAt.IsZero() || t.FinishedAt.IsZero() || !t.State.Terminal() {
			continue
		}
		if t.Node != "" {
			ran[t.Node] = t
		}
		if later(t, last) {
			last = t
		}
	}
	var path []*weaver.TaskInfo
	seen := make(map[string]bool) // guards against a cycle
	for last != nil {
		path = append(path, last)
		seen[last.Node] = true
		names, passed := slices.Clone(needs[last.Node]), make(map[string]bool)
		last = nil
		for len(names) > 0 {
			name := names[len(names)-1]
			names = names[:len(names)-1]
			if seen[name] || passed[name] {
				continue
			}
			if need := ran[name]; need == nil {
				passed[name] = true
				names = append(names, needs[name]...)
			} else if later(need, last) {
				last = need
			}
		}
	}
	slices.Reverse(path)
	return path
}

// path returns the critical path for people, folded at its arrows.
func (s *summary) path(path []*weaver.TaskInfo) string {
	columns := s.columns
	const ends = 10 // tasks shown at each end of a long path
	var sum time.Duration
	var parts []string
	for i, t := range path {
		d := s.duration(t)
		sum += d
		switch {
		case len(path) <= 2*ends+1 || i < ends || i >= len(path)-ends:
			parts = append(parts, taskName(t, max(8, columns-20))+" "+text.Took(d))
		case i == ends:
			parts = append(parts, "… "+text.Plural(len(path)-2*ends, "more task"))
		}
	}
	var lines []string
	line := "Critical path: "
	for i, part := range parts {
		word := part + " →"
		if i == len(parts)-1 {
			word = part
		}
		line = fold(&lines, line, word+" ", columns)
	}
	line = fold(&lines, line, "("+text.Took(sum)+" of "+text.Took(s.total())+")", columns)
	return strings.Join(append(lines, line), "\n")
}

// fold appends a word to a line, or begins a new line if it does not fit.
func fold(lines *[]string, line, word string, columns int) string {
	if text.Width(strings.TrimRight(line+word, " ")) > columns && strings.TrimSpace(line) != "" {
		*lines = append(*lines, strings.TrimRight(line, " "))
		line = "  "
	}
	return line + word
}

func taskName(t *weaver.TaskInfo, limit int) string {
	return text.OneLine(cmp.Or(t.Node, t.ID.String()), min(limit, maxName))
}
