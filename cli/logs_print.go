package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// logPrinter prints blocks of output.
type logPrinter interface {
	block(t *task.Task, attempt int, p []byte) error
	end(t *task.Task, attempt int) error // prints the unfinished rest of an attempt
	flush() error                        // writes buffered output
}

func (v *logsView) printer() logPrinter {
	w := bufio.NewWriterSize(v.live, 64<<10)
	switch {
	case v.json():
		return &jsonLogs{Writer: w, namespace: v.client.Namespace(), partial: make(map[task.ID][]byte)}
	case v.flags.Raw:
		return rawLogs{w}
	case v.job == (task.ID{}):
		return &cleanLogs{w, text.Cleaner{Colors: v.paint.On}}
	}
	return &lineLogs{Writer: w, colors: v.paint.On, lines: make(map[task.ID]*text.Assembler)}
}

// rawLogs prints the bytes of one task unchanged.
type rawLogs struct{ *bufio.Writer }

func (p rawLogs) block(_ *task.Task, _ int, block []byte) error {
	_, err := p.Write(block)
	return err
}
func (rawLogs) end(*task.Task, int) error { return nil }
func (p rawLogs) flush() error            { return p.Flush() }

// cleanLogs prints the output of one task without terminal control sequences.
type cleanLogs struct {
	*bufio.Writer
	clean text.Cleaner
}

func (p *cleanLogs) block(_ *task.Task, _ int, block []byte) error {
	_, err := p.WriteString(p.clean.Clean(string(block)))
	return err
}

func (p *cleanLogs) end(*task.Task, int) error {
	_, err := p.WriteString(p.clean.End())
	return err
}
func (p *cleanLogs) flush() error { return p.Flush() }

// lineLogs prints lines, each prefixed with the name of its task.
type lineLogs struct {
	*bufio.Writer
	colors bool
	lines  map[task.ID]*text.Assembler
}

func (p *lineLogs) block(t *task.Task, _ int, block []byte) error {
	a := p.lines[t.ID]
	if a == nil {
		a = &text.Assembler{Colors: p.colors}
		p.lines[t.ID] = a
	}
	var err error
	a.Write(string(block), func(line string) { err = cmp.Or(err, p.line(t, line)) })
	return err
}

func (p *lineLogs) line(t *task.Task, line string) error {
	_, err := p.WriteString(strings.TrimRight(text.OneLine(cmp.Or(t.Node, t.ID.String()), maxLogName)+"| "+line, " ") + "\n")
	return err
}

// maxLogName is the maximum width of a task's name before its lines, in columns.
const maxLogName = 120

func (p *lineLogs) end(t *task.Task, _ int) error {
	a := p.lines[t.ID]
	delete(p.lines, t.ID)
	if a == nil {
		return nil
	}
	if last := a.Rest(); last != "" {
		return p.line(t, last)
	}
	return nil
}

func (p *lineLogs) flush() error { return p.Flush() }

// jsonLogs prints a stream.chunk for each block, like run -o json, but without a time: logs have no times.
type jsonLogs struct {
	*bufio.Writer
	namespace string
	partial   map[task.ID][]byte // the first bytes of an incomplete character
}

type logChunk struct {
	Event     string  `json:"event"` // stream.chunk
	Namespace string  `json:"namespace"`
	TaskID    task.ID `json:"task_id"`
	TaskType  string  `json:"task_type"`
	JobID     task.ID `json:"job_id,omitzero"`
	Node      string  `json:"node,omitempty"`
	AttemptNo int     `json:"attempt_no"`
	Stream    string  `json:"stream"` // output: stdout and stderr in the order they were read
	Data      string  `json:"data"`
}

func (p *jsonLogs) block(t *task.Task, attempt int, block []byte) error {
	block = append(p.partial[t.ID], block...)
	whole := len(block) - incomplete(block)
	p.partial[t.ID] = append([]byte(nil), block[whole:]...)
	return p.object(t, attempt, block[:whole])
}

func (p *jsonLogs) object(t *task.Task, attempt int, block []byte) error {
	if len(block) == 0 {
		return nil
	}
	var line strings.Builder
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(logChunk{"stream.chunk", p.namespace, t.ID, t.Type, t.JobID, t.Node, attempt, "output", string(block)}); err != nil {
		return err
	}
	_, err := p.WriteString(text.PlainJSON(line.String()))
	return err
}

func (p *jsonLogs) end(t *task.Task, attempt int) error {
	rest := p.partial[t.ID]
	delete(p.partial, t.ID)
	return p.object(t, attempt, rest)
}

func (p *jsonLogs) flush() error { return p.Flush() }

// incomplete returns the number of bytes at the end of a block that begin an incomplete character.
func incomplete(block []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(block); n++ {
		if end := block[len(block)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
