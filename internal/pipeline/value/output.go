package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/goweaver/weaver/internal/pipeline/template"
	"github.com/goweaver/weaver/task"
)

// Output is the outcome of a task whose values are referenced.
type Output struct {
	Task  string // its name in the job
	Kind  Kind
	State task.State
	Error string          // of a failed task
	Raw   json.RawMessage // output of a task that succeeded

	Optional bool // values of a task that did not succeed are empty: for the task's undo

	ID   task.ID
	File func(name string) (path string, err error) // copies a kept file; nil: files are not available here
}

// OutputOf returns the Output of a stored task.
func OutputOf(t *task.Task) *Output {
	o := &Output{Task: t.Node, Kind: KindOf(t.Type), State: t.State, Raw: t.Output, ID: t.ID}
	if t.Error != nil {
		o.Error = t.Error.Message
	}
	return o
}

// Error is the reason why a value does not exist or does not fit its place. A
// retry gives the same error.
type Error struct {
	Path template.Path // nil: the whole text
	Why  string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Path == nil {
		return e.Why
	}
	return e.Path.String() + ": " + e.Why
}

// found is a value as text and as JSON.
type found struct {
	text string
	json json.RawMessage // nil: the text as a string
}

func number(n int) found {
	text := strconv.Itoa(n)
	return found{text, json.RawMessage(text)}
}

// command and answer are the parts of builtin outputs that values come from.
type (
	command struct {
		ExitCode        int    `json:"exit_code"`
		Stdout          string `json:"stdout"`
		Stderr          string `json:"stderr"`
		StdoutBytes     int64  `json:"stdout_bytes"`
		StderrBytes     int64  `json:"stderr_bytes"`
		StdoutTruncated bool   `json:"stdout_truncated"`
		StderrTruncated bool   `json:"stderr_truncated"`
	}
	answer struct {
		Status    int    `json:"status"`
		Body      string `json:"body"`
		BodyBytes int64  `json:"body_bytes"`
		Truncated bool   `json:"truncated"`
	}
)

// get returns a value. Its error is an *Error.
func (o *Output) get(p template.Path) (found, error) {
	wrong := func(format string, args ...any) (found, error) {
		return found{}, &Error{p, fmt.Sprintf(format, args...)}
	}
	if problem := o.Kind.Check(p); problem != nil {
		return wrong("%s", strings.TrimPrefix(problem.Error(), p.String()+" "))
	}
	if o.State != task.Succeeded {
		if code, ok := o.exitOfFailed(p); ok {
			return number(code), nil
		}
		if o.Optional {
			return found{}, nil
		}
		return wrong("%s", o.missing(p))
	}
	if name := File(p); name != "" {
		return o.file(p, name)
	}
	if o.Kind == Other {
		return o.part(p, o.Raw)
	}
	var c command
	var a answer
	decoded := any(&c)
	if o.Kind == Request {
		decoded = &a
	}
	if err := json.Unmarshal(o.Raw, decoded); err != nil {
		return wrong("the output of task %q cannot be read: %v", o.Task, err)
	}
	text, size, cut, kept := c.Stdout, c.StdoutBytes, c.StdoutTruncated, "end"
	switch {
	case p[2] == exitCode:
		return number(c.ExitCode), nil
	case p[2] == status:
		return number(a.Status), nil
	case o.Kind == Request:
		text, size, cut, kept = a.Body, a.BodyBytes, a.Truncated, "beginning"
	case p[2] == stderr:
		text, size, cut = c.Stderr, c.StderrBytes, c.StderrTruncated
	}
	switch {
	case cut:
		return wrong("task %q wrote %d bytes, of which only the %s was kept: let it write them to a file, and read that", o.Task, size, kept)
	case int64(len(text)) != size: // each invalid byte was replaced by three
		return wrong("what task %q wrote is not UTF-8, or has NUL characters: let it write them to a file, and read that", o.Task)
	case p[2] == asJSON:
		return o.part(p, json.RawMessage(text))
	case o.Kind == Command:
		text = strings.TrimRight(text, "\n") // as $(…) of the shell
	}
	return found{text: text}, nil
}

// file returns the path of a copy of a kept file.
func (o *Output) file(p template.Path, name string) (found, error) {
	if o.File == nil {
		return found{}, &Error{p, "a file can be given to a command only"}
	}
	path, err := o.File(name)
	if wrong := (*Error)(nil); errors.As(err, &wrong) && wrong.Path == nil {
		err = &Error{p, wrong.Why}
	}
	return found{text: path}, err
}

// later returns the path by which a worker finds a file of a task outside the
// needs.
func (o *Output) later(p template.Path) template.Path {
	return template.Path{Root, o.ID.String(), artifacts, p[3]}
}

var exitStatus = regexp.MustCompile(`^exit status ([0-9]+)\b`)

// exitOfFailed returns the exit status of a failed command, if it failed with one.
func (o *Output) exitOfFailed(p template.Path) (code int, ok bool) {
	if o.State != task.Failed || o.Kind != Command || !Survives(p) {
		return 0, false
	}
	m := exitStatus.FindStringSubmatch(o.Error) // the format of builtin.ExitError
	if m == nil {
		return 0, false
	}
	code, err := strconv.Atoi(m[1])
	return code, err == nil
}

// missing returns the reason why a task without success lacks the value.
func (o *Output) missing(p template.Path) string {
	switch {
	case !o.State.Terminal():
		return fmt.Sprintf("task %q has not ended", o.Task)
	case o.State != task.Failed:
		return fmt.Sprintf("task %q was %s, and has no output", o.Task, o.State)
	case o.Kind == Command && Survives(p):
		return fmt.Sprintf("task %q failed without an exit status: %s", o.Task, excerpt(o.Error))
	}
	return fmt.Sprintf("task %q failed, and keeps no .%s: %s", o.Task, p[2], excerpt(o.Error))
}

// part returns the part of a JSON value that the path names after its third step.
func (o *Output) part(p template.Path, raw json.RawMessage) (found, error) {
	if !json.Valid(raw) {
		return found{}, &Error{p, fmt.Sprintf("the output of task %q is no JSON: it is %s", o.Task, excerpt(string(raw)))}
	}
	raw = bytes.TrimSpace(raw)
	for i, step := range p[3:] {
		next, problem := child(raw, step)
		if problem != "" {
			return found{}, &Error{p, fmt.Sprintf("%s %s: it is %s", p[:3+i].Describe(), problem, excerpt(string(raw)))}
		}
		raw = next
	}
	var text string
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return found{text: text}, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return found{}, &Error{p, err.Error()}
	}
	return found{compact.String(), compact.Bytes()}, nil
}

// child returns the value at a key or index.
func child(raw json.RawMessage, step string) (next json.RawMessage, problem string) {
	var object map[string]json.RawMessage
	var array []json.RawMessage
	switch raw[0] {
	case '{':
		_ = json.Unmarshal(raw, &object) // it is valid
		if next, ok := object[step]; ok {
			return bytes.TrimSpace(next), ""
		}
		return nil, fmt.Sprintf("has no %q", step)
	case '[':
		_ = json.Unmarshal(raw, &array)
		index, err := strconv.Atoi(step)
		if err != nil || index < 0 {
			return nil, fmt.Sprintf("is an array, and has no %q", step)
		}
		if index < len(array) {
			return bytes.TrimSpace(array[index]), ""
		}
		return nil, fmt.Sprintf("has no [%s], but %d entries", step, len(array))
	}
	return nil, fmt.Sprintf("is not an object, and has no %q", step)
}

// maxExcerpt is the maximum length of an excerpt in messages, in characters.
const maxExcerpt = 80

// excerpt returns the beginning of a text on one line.
func excerpt(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(text) {
		if n++; n > maxExcerpt {
			return b.String() + "…"
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	if n == 0 {
		return "empty"
	}
	return b.String()
}
