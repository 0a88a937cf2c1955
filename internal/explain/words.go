package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// MaxMessage is the maximum width in columns of a recorded message in a sentence, and MaxNote that in a table.
const (
	MaxMessage = 300
	MaxNote    = 60
)

// Label names a task in a sentence, by its name in the job if it has one.
func Label(t *task.Task) string {
	if t.Node != "" {
		return fmt.Sprintf("%q (%s)", text.OneLine(t.Node, MaxNote), t.ID)
	}
	return fmt.Sprintf("%s (%s)", t.ID, t.Type)
}

// Short is [Label] without the ID, for a task named before.
func Short(t *task.Task) string {
	if t.Node != "" {
		return fmt.Sprintf("%q", text.OneLine(t.Node, MaxNote))
	}
	return t.ID.String()
}

// Failure returns an error with its kind and whole message on one line: `handler_error in step "charge": card
// refused`. The message takes at most limit columns.
func Failure(e *task.Error, limit int) string {
	if e == nil {
		return noError
	}
	message := text.OneLine(e.Message, limit)
	switch head := FailureHead(e); {
	case message == "":
		return head
	case !e.SaysKind():
		return head + ": " + message
	case head == string(e.Kind):
		return message
	default: // the message does not name the step
		return head + strings.TrimPrefix(message, string(e.Kind))
	}
}

const noError = "no error is recorded"

// FailureHead returns the words before an error's message: its kind, its code if it has one, and its step unless the
// message names it.
func FailureHead(e *task.Error) string {
	head := string(e.Kind)
	if e.Code != "" {
		head += " (" + text.OneLine(e.Code, MaxNote) + ")"
	}
	if e.Step == "" || strings.Contains(e.Message, fmt.Sprintf("%q", e.Step)) {
		return head
	}
	return fmt.Sprintf("%s in step %q", head, text.OneLine(e.Step, MaxNote))
}

// Headline returns an error in a few words, for views that also show the task's output: the first line of its
// message, with its kind unless the reader can infer it.
func Headline(e *task.Error) string {
	line := Head(e.Message)
	switch {
	case line == "":
		return string(e.Kind)
	case impliesKind(e, line):
		return line
	}
	return string(e.Kind) + ": " + line
}

// impliesKind reports whether the first line of an error implies its kind: an ordinary failure needs no kind, and
// some messages begin with it.
func impliesKind(e *task.Error, line string) bool {
	return e.Kind == task.KindHandler || e.Kind == task.KindNone || strings.HasPrefix(line, string(e.Kind)) || e.SaysKind()
}

// Head returns the first line of a message without the words that introduce the next lines: "exit status 3; it wrote
// last:" becomes "exit status 3".
func Head(message string) string {
	line := text.FirstLine(message, text.MaxLine)
	introduces := strings.HasSuffix(line, ":")
	line = strings.TrimRight(line, ":")
	if i := strings.LastIndex(line, "; "); i > 0 && introduces {
		line = line[:i]
	}
	return line
}

// wrote matches the second line of a command's error, which introduces the last lines of output; see
// builtin.ExitError.
var wrote = regexp.MustCompile(`^It wrote (?:last:|(\d+) lines in all(?:, last:|\.))$`)

// FailureLines returns the first and last lines of an error: at most limit lines, plus one that counts the omitted
// lines. The error of a command ends with its last lines of output. logs is the command line that shows the whole
// output, if there is one.
func FailureLines(e *task.Error, limit int, logs string) []string {
	if e == nil {
		return []string{noError}
	}
	lines := text.Lines(strings.Trim(e.Message, "\r\n"))
	if len(lines) == 0 {
		return []string{string(e.Kind)}
	}
	if !impliesKind(e, lines[0]) {
		lines[0] = string(e.Kind) + ": " + lines[0]
	}
	rest, total := lines[1:], len(lines)-1
	if said, count, ok := lastWritten(lines); ok {
		rest, total = said, count
	}
	shown := min(len(rest), limit-1)
	if total <= shown {
		return lines
	}
	note := "… " + text.Plural(total-shown, "line")
	if logs != "" {
		note += ": `" + logs + "`"
	}
	return slices.Concat(lines[:1], []string{note}, rest[len(rest)-shown:])
}

// lastWritten returns the last lines of output from the lines of a command's error, and the number of lines that the
// command wrote. Output that only appears in the first line does not count. ok is false for an error of another kind.
func lastWritten(lines []string) (last []string, count int, ok bool) {
	if len(lines) < 2 {
		return nil, 0, false
	}
	said := wrote.FindStringSubmatch(lines[1])
	if said == nil {
		return nil, 0, false
	}
	last = lines[2:]
	if said[1] == "" {
		return last, len(last), true
	}
	count, err := strconv.Atoi(said[1])
	if len(last) == 0 {
		count--
	}
	return last, count, err == nil
}

// Who returns the actor and the reason as recorded: "ops: too late".
func Who(actor, reason string) string {
	if actor != "" && reason != "" {
		return actor + ": " + reason
	}
	return actor + reason
}

// By returns [Who] as a part of a sentence: " by ops: too late".
func By(actor, reason string) string {
	said := Who(text.OneLine(actor, MaxNote), text.OneLine(reason, MaxMessage))
	switch {
	case said == "":
		return ""
	case actor == "":
		return ": " + said
	}
	return " by " + said
}

// Progress formats a progress report: "3 of 10: reading". The message takes at most limit columns.
func Progress(p *task.Progress, limit int) string {
	said := fmt.Sprintf("%g", p.Current)
	if p.Total > 0 {
		said += fmt.Sprintf(" of %g", p.Total)
	}
	if p.Message != "" {
		said += ": " + text.OneLine(p.Message, limit)
	}
	return said
}

// listed joins names: "a, b and 3 more".
func listed(names []string, more int) string {
	said := strings.Join(names, ", ")
	if more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

// quoted lists the first names in quotes: `"a", "b" and 3 more`.
func quoted(names []string) string {
	const limit = 8
	shown := make([]string, min(len(names), limit))
	for i := range shown {
		shown[i] = fmt.Sprintf("%q", text.OneLine(names[i], MaxNote))
	}
	return listed(shown, len(names)-len(shown))
}

// named lists names with their noun: `step "a"`, `steps "a", "b" and 3 more`.
func named(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return noun + " " + quoted(names)
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// kindOf returns the kind of a task's error.
func kindOf(t *task.Task) task.ErrorKind {
	if t.Error == nil {
		return task.KindNone
	}
	return t.Error.Kind
}
