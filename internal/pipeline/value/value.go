// Package value resolves references to values of other tasks, such as
// {{.tasks.fetch.stdout}}. It puts a value into an argument, a variable, a URL, a
// header or a body so that it stays one.
//
// It reads no store: callers look up the tasks.
package value

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/pipeline/template"
)

// Root is the first step of a path to a task's value.
const Root = "tasks"

// Kind is a kind of task, which determines the task's values.
type Kind string

// The kinds of tasks.
const (
	Command Kind = "a command"
	Request Kind = "a request"
	Other   Kind = "a task with a type of its own"
)

// KindOf returns the kind of a task type.
func KindOf(typeName string) Kind {
	switch typeName {
	case "weaver.exec.run.v1": // builtin.Run
		return Command
	case "weaver.http.request.v1": // builtin.Request
		return Request
	}
	return Other
}

// The names of values.
const (
	stdout   = "stdout"
	stderr   = "stderr"
	exitCode = "exit_code"
	status   = "status"
	body     = "body"
	asJSON   = "json"

	artifacts = "artifacts" // paths of copies of kept files, for commands
)

func (k Kind) members() []string {
	switch k {
	case Command:
		return []string{stdout, stderr, exitCode, asJSON, artifacts}
	case Request:
		return []string{body, status, asJSON}
	}
	return []string{asJSON, artifacts}
}

// instead returns the value probably meant by one that the kind lacks, or "".
func (k Kind) instead(member string) string {
	meant := map[Kind]map[string]string{
		Command: {body: stdout, status: exitCode, "output": stdout, "out": stdout, "err": stderr, "exit_status": exitCode, "exitcode": exitCode, "code": exitCode},
		Request: {stdout: body, exitCode: status, "output": body, "text": body, "response": body, "status_code": status, "code": status},
		Other:   {"output": asJSON, stdout: asJSON, body: asJSON},
	}
	return meant[k][member]
}

// Problem is a mistake in a path, with a correction.
type Problem struct{ Problem, Hint string }

// Error implements error.
func (p *Problem) Error() string { return p.Problem + ": " + p.Hint }

const example = "{{.tasks.fetch.stdout}}"

// CheckPath returns the problem with a path for any kind of task, or nil.
func CheckPath(p template.Path) *Problem {
	switch {
	case len(p) == 0 || p[0] != Root:
		return &Problem{fmt.Sprintf("%s is not a value of a task", p), "write for example " + example}
	case len(p) == 1:
		return &Problem{fmt.Sprintf("%s names no task", p), "write for example " + example}
	case len(p) == 2:
		return &Problem{fmt.Sprintf("%s does not say which value of the task", p), fmt.Sprintf("write for example %s, or %s", with(p, stdout), with(p, asJSON))}
	case p[2] == artifacts && len(p) == 3:
		return &Problem{fmt.Sprintf("%s does not say which file", p), "write for example " + with(p, "out/a.csv")}
	case p[2] == artifacts && len(p) > 4:
		return &Problem{fmt.Sprintf("%s goes on behind the name of a file", p), "write the whole name in quotes, as in " + with(p[:3], "out/a.csv")}
	case p[2] != asJSON && p[2] != artifacts && len(p) > 3:
		return &Problem{fmt.Sprintf("%s goes on behind .%s, which has no parts", p, p[2]), "write " + with(p[:2], slices.Concat([]string{asJSON}, p[3:])...) + " for a part of JSON"}
	}
	return nil
}

// Check returns the problem with a path to a value of a task of this kind, or nil.
func (k Kind) Check(p template.Path) *Problem {
	if wrong := CheckPath(p); wrong != nil {
		return wrong
	}
	if slices.Contains(k.members(), p[2]) {
		return nil
	}
	hint := "write " + with(p[:2], k.instead(p[2]))
	if k.instead(p[2]) == "" {
		var all []string
		for _, m := range k.members() {
			if m == artifacts {
				all = append(all, with(p[:2], m, "out/a.csv"))
				continue
			}
			all = append(all, with(p[:2], m))
		}
		hint = "its values are " + strings.Join(all, ", ")
	}
	return &Problem{fmt.Sprintf("%s does not exist: task %q is %s", p, p[1], k), hint}
}

// File returns the kept file that p names, as in tasks.NAME.artifacts["FILE"], or "".
func File(p template.Path) string {
	if len(p) == 4 && p[0] == Root && p[2] == artifacts {
		return p[3]
	}
	return ""
}

// Survives reports whether a failed task keeps the value.
func Survives(p template.Path) bool { return len(p) == 3 && p[2] == exitCode }

// with returns the path with further steps, as written.
func with(p template.Path, steps ...string) string {
	return slices.Concat(p, template.Path(steps)).String()
}

// Has reports whether a text references values of tasks. A malformed text does
// not.
func Has(text string) bool { return len(Paths(text)) > 0 }

// Paths returns the references of a text to values of tasks.
func Paths(text string) []template.Path {
	if !template.Has(text) {
		return nil
	}
	parsed, err := template.Parse(text)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(parsed.Paths(), func(p template.Path) bool { return p[0] != Root })
}

// Escape returns a template of a literal text.
func Escape(text string) string {
	if !template.Has(text) {
		return text
	}
	return template.Escape(text)
}

// Show returns a template as written in a file, with literal braces unescaped.
func Show(text string) string {
	parsed, err := template.Parse(text)
	if err != nil {
		return text
	}
	var b strings.Builder
	for _, part := range parsed {
		if part.Path != nil {
			b.WriteString(part.Path.String())
		} else {
			b.WriteString(part.Literal)
		}
	}
	return b.String()
}
