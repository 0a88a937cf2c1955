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

// MaxMessage is how many columns of a recorded message a sentence quotes, and
// MaxNote how many a table does.
const (
	MaxMessage = 300
	MaxNote    = 60
)

// Label names a task in a sentence: by its name in the job when it has one.
func Label(t *task.Task) string {
	if t.Node != "" {
		return fmt.Sprintf("%q (%s)", text.OneLine(t.Node, MaxNote), t.ID)
	}
	return fmt.Sprintf("%s (%s)", t.ID, t.Type)
}

// Short is [Label] without the ID, for a task that was named before.
func Short(t *task.Task) string {
	if t.Node != "" {
		return fmt.Sprintf("%q", text.OneLine(t.Node, MaxNote))
	}
	return t.ID.String()
}

// Failure is an error with its kind and whole message on one line:
// `handler_error in step "charge": card refused`. The message takes at most
// limit columns.
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
	default: // the step is not in the message
		return head + strings.TrimPrefix(message, string(e.Kind))
	}
}

const noError = "no error is recorded"

// FailureHead is what comes before an error's message: its kind, its code if it
// has one, and its step unless the message names it.
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

// Headline is an error in a few words, for views that show what the task
// wrote beside it: the first line of its message, with its kind unless that
// goes without saying.
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

// impliesKind reports whether a reader of an error's first line knows its
// kind: an ordinary failure needs none, and some messages begin with it.
func impliesKind(e *task.Error, line string) bool {
	return e.Kind == task.KindHandler || e.Kind == task.KindNone || strings.HasPrefix(line, string(e.Kind)) || e.SaysKind()
}

// Head is the first line of a message, without the words that introduce the
// next lines: "exit status 3; it wrote last:" is "exit status 3".
func Head(message string) string {
	line := text.FirstLine(message, text.MaxLine)
	introduces := strings.HasSuffix(line, ":")
	line = strings.TrimRight(line, ":")
	if i := strings.LastIndex(line, "; "); i > 0 && introduces {
		line = line[:i]
	}
	return line
}

// wrote is the second line of a command's error, before the last lines that it
// wrote; see builtin.ExitError.
var wrote = regexp.MustCompile(`^It wrote (?:last:|(\d+) lines in all(?:, last:|\.))$`)

// FailureLines is an error in at most limit lines and one that counts what is
// not shown: the first and the last ones. Those of a command's error end with
// the last lines that it wrote; logs is the command line that shows all of
// them, if there is one.
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

// lastWritten returns the last lines that a command wrote from the lines of its
// error, and how many it wrote. One that is in the first line of the error
// alone does not count. It is false for an error of another kind.
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

// Who is who did something and why, as recorded: "ops: too late".
func Who(actor, reason string) string {
	if actor != "" && reason != "" {
		return actor + ": " + reason
	}
	return actor + reason
}

// By is [Who] as a part of a sentence: " by ops: too late".
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

// Progress is a progress report: "3 of 10: reading". The message takes at most
// limit columns.
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

// quoted lists the first names: `"a", "b" and 3 more`.
func quoted(names []string) string {
	const limit = 8
	shown := make([]string, min(len(names), limit))
	for i := range shown {
		shown[i] = fmt.Sprintf("%q", text.OneLine(names[i], MaxNote))
	}
	return listed(shown, len(names)-len(shown))
}

// named lists things by name: `step "a"`, `steps "a", "b" and 3 more`.
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

// kindOf is the kind of a task's error.
func kindOf(t *task.Task) task.ErrorKind {
	if t.Error == nil {
		return task.KindNone
	}
	return t.Error.Kind
}
