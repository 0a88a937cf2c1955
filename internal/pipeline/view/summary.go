package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Limits of a summary.
const (
	maxRows       = 40 // of its table
	maxComplaints = 10 // tasks whose errors are shown
	maxErrorLines = 20 // the last lines of each
)

// Summary writes the end of the job, or its current state: the tasks, the critical
// path, the failures, and a sentence. past holds the tasks with more than one
// attempt. With JSON it is the last object, job.finished. Call it once, after Run
// returns; changes not yet shown come first.
func (m *Monitor) Summary(st JobTasks, past map[task.ID]Past) error {
	m.Reconcile(st)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phase = ended
	now := time.Now()
	s := summary{st: st, past: past, needs: m.needs, paint: m.paint, now: now, logs: m.cfg.Logs}
	if m.cfg.Format == JSON {
		m.object(s.event(m.model.header(now)))
		m.phase = summed
		return m.err
	}
	if m.resumed {
		s.since = m.begun
	}
	s.columns = unlimited
	if columns, _ := m.askSize(); columns > 0 || m.cfg.Format == Tree {
		s.columns, _ = m.size()
	}
	m.flush()
	m.pending = append(m.pending, s.said(m.cfg.Quiet)...)
	m.flush()
	m.phase = summed
	return m.err
}

// unlimited is the width of a file or pipe.
const unlimited = 200

// summary is the final output.
type summary struct {
	st      JobTasks
	past    map[task.ID]Past
	needs   map[string][]string
	paint   text.Painter
	columns int
	since   time.Time // begin of this run, for a job that began earlier
	now     time.Time
	logs    func(*task.Task) string // see Config
}

// total returns the job's duration, up to now if it runs.
func (s *summary) total() time.Duration {
	return max(0, cmp.Or(s.st.FinishedAt, s.now).Sub(s.st.CreatedAt))
}

func (s *summary) event(h event.JobHeader) event.JobFinished {
	ev := event.JobFinished{
		JobHeader: h, State: s.st.State, Duration: s.total(),
		Tasks: make([]event.JobTask, len(s.st.Tasks)), CriticalPath: []string{},
	}
	for i := range s.st.Tasks {
		t := &s.st.Tasks[i]
		p := s.pastOf(t)
		ev.Tasks[i] = event.JobTask{
			Name: t.Node, ID: t.ID, State: t.State, Allowed: t.End().Allowed(), Attempts: p.Attempts, Lost: p.Lost, Duration: s.duration(t),
		}
		if t.State != task.Succeeded {
			ev.Tasks[i].Error = t.Error
		}
	}
	for _, t := range criticalPath(s.st.Tasks, s.needs) {
		ev.CriticalPath = append(ev.CriticalPath, t.Node)
		ev.CriticalPathDuration += s.duration(t)
	}
	return ev
}

// said returns the summary. With Quiet it has no table, and nothing for a job that
// succeeded.
func (s *summary) said(quiet bool) string {
	switch {
	case !quiet:
		return s.text()
	case s.st.State == task.JobSucceeded:
		return ""
	}
	return s.sentence() + "\n"
}

func (s *summary) text() string {
	var b strings.Builder
	b.WriteString("\n")
	s.table(&b)
	if path := criticalPath(s.st.Tasks, s.needs); len(path) > 0 {
		fmt.Fprintf(&b, "\n%s\n", s.path(path))
	}
	s.complaints(&b)
	fmt.Fprintf(&b, "\n%s\n", s.sentence())
	return b.String()
}

// complaints returns the errors of failed and blocked tasks.
func (s *summary) complaints(b *strings.Builder) {
	shown, more := 0, 0
	for i := range s.st.Tasks {
		t := &s.st.Tasks[i]
		if t.State != task.Failed && t.State != task.Blocked {
			continue
		}
		if shown++; shown > maxComplaints {
			more++
			continue
		}
		head := fmt.Sprintf("%s %s", taskName(t, max(8, s.columns-30)), t.State)
		if t.State == task.Failed {
			head += explain.InAttempt(s.pastOf(t).Attempts) + explain.Allowed(t)
		}
		fmt.Fprintf(b, "\n%s\n", s.paint.Paint(text.StateColor(t.State), head+":"))
		for _, line := range explain.FailureLines(t.Error, maxErrorLines, s.logs(t)) {
			fmt.Fprintf(b, "%s\n", strings.TrimRight("  "+line, " "))
		}
	}
	if more > 0 {
		fmt.Fprintf(b, "\nand %d more.\n", more)
	}
}

// sentence returns the job in one sentence.
func (s *summary) sentence() string {
	took := text.Took(s.total())
	if !s.since.IsZero() {
		took += fmt.Sprintf(", %s of it in this run", text.Took(max(0, cmp.Or(s.st.FinishedAt, s.now).Sub(s.since))))
	}
	state, detail := explain.JobResult(&s.st.JobInfo, s.st.Tasks)
	return text.Stop(fmt.Sprintf("%s %s %s: %s", text.OneLine(s.st.Name, maxName), s.paint.Paint(text.StateColor(s.st.State), state), took, detail))
}
