package cli

import (
	"strings"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// liveOutput assembles the output of a worker's tasks into lines. It is not safe for concurrent use.
type liveOutput map[task.ID]map[string]*text.Assembler

// lines returns the lines that an event completes: those of a block of output, or the unfinished ones at the end of
// an attempt.
func (o liveOutput) lines(ev event.Event) (lines []string) {
	id := ev.Head().TaskID
	switch ev := ev.(type) {
	case event.StreamChunk:
		block, ok := ev.Data.(string)
		if !ok || ev.Stream != "stdout" && ev.Stream != "stderr" {
			return nil
		}
		if o[id] == nil {
			o[id] = make(map[string]*text.Assembler, 2)
		}
		a := o[id][ev.Stream]
		if a == nil {
			a = new(text.Assembler)
			o[id][ev.Stream] = a
		}
		a.Write(block, func(line string) { lines = append(lines, line) })
	case event.TaskStarted: // drops the rest of an abandoned attempt
		delete(o, id)
	default:
		if !event.EndsAttempt(ev) {
			return nil
		}
		for _, stream := range []string{"stdout", "stderr"} {
			if a := o[id][stream]; a != nil {
				if last := a.Rest(); last != "" {
					lines = append(lines, last)
				}
			}
		}
		delete(o, id)
	}
	return lines
}

// withoutOutput returns the event of a command's failure with only the first line of its error: the other lines
// repeat printed output.
func withoutOutput(ev event.Event) event.Event {
	if ev.Head().TaskType != builtin.Run.Name() {
		return ev
	}
	first := func(e task.Error) task.Error {
		e.Message, _, _ = strings.Cut(e.Message, "\n")
		return e
	}
	switch ev := ev.(type) {
	case event.TaskFailed:
		ev.Error = first(ev.Error)
		return ev
	case event.TaskRetrying:
		ev.Error = first(ev.Error)
		return ev
	case event.TaskCancelled:
		ev.Error = first(ev.Error)
		return ev
	}
	return ev
}
