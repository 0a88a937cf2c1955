package cli

import (
	"bufio"
	"context"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// stored shows the lines and chunks that the engine stored for a task (PersistLogs, PersistEvents), unless the task
// is a command.
func (v *logsView) stored(ctx context.Context) (shown bool, err error) {
	if v.job != (task.ID{}) {
		return false, nil
	}
	t, err := v.client.Get(ctx, v.task)
	if err != nil || t.Type == builtin.Run.Name() {
		return false, err
	}
	out := bufio.NewWriter(v.live)
	defer func() { _ = out.Flush() }()
	var enc event.Encoder
	for ev, err := range v.client.Subscribe(ctx, weaver.EventFilter{TaskID: v.task, NoWait: !v.flags.Follow}) {
		switch {
		case err != nil && ctx.Err() != nil && v.flags.Follow:
			return true, nil // users end --follow with an interrupt
		case err != nil:
			return shown, err
		case v.flags.Attempt > 0 && ev.Head().AttemptNo != v.flags.Attempt:
			continue
		}
		for _, line := range v.storedLines(&enc, ev) {
			shown = true
			if _, err := fmt.Fprintln(out, line); err != nil {
				return true, err
			}
		}
		if v.flags.Follow {
			if err := out.Flush(); err != nil {
				return true, err
			}
		}
	}
	return shown, nil
}

// storedLines returns the lines for an event; empty if the event is not part of a log.
func (v *logsView) storedLines(enc *event.Encoder, ev event.Event) (lines []string) {
	line, ok := text.LogLine(ev, v.clock.Zone)
	switch {
	case !ok:
		return nil
	case !v.json():
		return []string{line}
	}
	for _, line := range enc.Lines(ev) {
		lines = append(lines, text.PlainJSON(line))
	}
	return lines
}
