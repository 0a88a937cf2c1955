package view

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// terseFrom is the number of tasks from which Lines is terse: a line per tenth of
// the tasks, and the failures, in place of every start, end and line of output.
const terseFrom = 200

// terse shows a job of many tasks as lines.
type terse struct {
	on     bool
	tenths int // tenths shown
}

// newTerse counts the tasks that have ended already.
func (m *model) newTerse(cfg *Config) terse {
	t := terse{on: cfg.Format == Lines && (cfg.Quiet || len(m.nodes) >= terseFrom)}
	if t.on {
		ended, _ := m.counts()
		t.tenths = 10 * ended / max(1, len(m.nodes))
	}
	return t
}

// counts returns the number of ended tasks and of failed ones.
func (m *model) counts() (ended, failed int) {
	for _, n := range m.nodes {
		if n.state.Terminal() {
			ended++
		}
		if n.state == task.Failed {
			failed++
		}
	}
	return ended, failed
}

// showTerse appends the terse lines for a change.
func (m *Monitor) showTerse(c change, now time.Time) {
	switch ev := c.event.(type) {
	case event.TaskFailed:
		said, color := m.model.sentence(c, m.cfg.Zone, now)
		m.line(said, color, now)
		for _, line := range explain.FailureLines(&ev.Error, maxErrorLines, "")[1:] { // the sentence has the first line
			m.put("  " + line)
		}
	case event.TaskBlocked, event.JobBlocked:
		said, color := m.model.sentence(c, m.cfg.Zone, now)
		m.line(said, color, now)
	case event.TaskRetrying:
		if !m.cfg.Quiet {
			said, color := m.model.sentence(c, m.cfg.Zone, now)
			m.line(said, color, now)
		}
	case event.TaskSucceeded, event.TaskCancelled:
	default:
		return
	}
	if !m.cfg.Quiet {
		m.showTenth(now)
	}
}

// showTenth appends a line at each tenth of the tasks.
func (m *Monitor) showTenth(now time.Time) {
	all := len(m.model.nodes)
	ended, failed := m.model.counts()
	if tenths := 10 * ended / max(1, all); tenths > m.terse.tenths {
		m.terse.tenths = tenths
		line := fmt.Sprintf("%s: %d of %d tasks have ended (%d %%)", m.model.name, ended, all, 10*tenths)
		if failed > 0 {
			line += fmt.Sprintf(", %d failed", failed)
		}
		m.line(line, "", now)
	}
}
