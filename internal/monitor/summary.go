package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// How much a summary shows.
const (
	maxRows       = 40 // of its table
	maxComplaints = 10 // tasks whose errors are shown
	maxErrorLines = 20 // the last ones of each
)

// Summary tells how the job ended, or how it stands: its tasks, the critical
// path, what went wrong, and a sentence. With JSON it is the last object,
// job.finished. It is called once, when Run has returned; changes that nobody
// told come first.
func (m *Monitor) Summary(st weaver.JobStatus) error {
	m.Reconcile(st)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phase = ended
	now := time.Now()
	s := summary{st: st, needs: m.needs, paint: m.paint, now: now}
	if m.cfg.Format == JSON {
		m.put(encode(s.event(m.model.header(now))))
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
	m.pending = append(m.pending, s.text()...)
	m.flush()
	m.phase = summed
	return m.err
}

// unlimited is the width of a file or pipe.
const unlimited = 200

// summary is what is told at the end.
type summary struct {
	st      weaver.JobStatus
	needs   map[string][]string
	paint   text.Painter
	columns int
	since   time.Time // of a job that was begun before: when this run did
	now     time.Time
}

// total is how long the job took, or takes until now.
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
		ev.Tasks[i] = event.JobTask{Name: t.Node, ID: t.ID, State: t.State, Attempts: attempts(t), Duration: duration(t, s.now)}
		if t.State != task.Succeeded {
			ev.Tasks[i].Error = t.Error
		}
	}
	for _, t := range criticalPath(s.st.Tasks, s.needs) {
		ev.CriticalPath = append(ev.CriticalPath, t.Node)
		ev.CriticalPathDuration += duration(t, s.now)
	}
	return ev
}

func (s *summary) text() string {
	var b strings.Builder
	b.WriteString("\n")
	s.table(&b)
	if path := criticalPath(s.st.Tasks, s.needs); len(path) > 0 {
		fmt.Fprintf(&b, "\n%s\n", pathText(path, s.total(), s.columns))
	}
	s.complaints(&b)
	fmt.Fprintf(&b, "\n%s\n", s.sentence())
	return b.String()
}

// complaints shows the errors of the tasks that failed or are blocked.
func (s *summary) complaints(b *strings.Builder) {
	told, more := 0, 0
	for i := range s.st.Tasks {
		t := &s.st.Tasks[i]
		if t.State != task.Failed && t.State != task.Blocked {
			continue
		}
		if told++; told > maxComplaints {
			more++
			continue
		}
		head := fmt.Sprintf("%s %s", taskName(t, max(8, s.columns-30)), t.State)
		if n := attempts(t); n > 1 && t.State == task.Failed {
			head += fmt.Sprintf(" in attempt %d", n)
		}
		fmt.Fprintf(b, "\n%s\n", s.paint.Paint(text.StateColor(t.State), head+":"))
		for _, line := range errorLines(t.Error) {
			fmt.Fprintf(b, "%s\n", strings.TrimRight("  "+line, " "))
		}
	}
	if more > 0 {
		fmt.Fprintf(b, "\nand %d more.\n", more)
	}
}

// errorLines is the beginning of an error and its last lines: of a command,
// they are the last ones of its output.
func errorLines(e *task.Error) []string {
	if e == nil {
		return []string{"no error is recorded"}
	}
	lines := printableLines(strings.Trim(e.Message, "\r\n"))
	if len(lines) == 0 {
		return []string{string(e.Kind)}
	}
	if e.Kind != task.KindHandler && e.Kind != task.KindNone && !strings.HasPrefix(lines[0], string(e.Kind)) {
		lines[0] = string(e.Kind) + ": " + lines[0]
	}
	if n := len(lines); n > maxErrorLines {
		lines = slices.Concat(lines[:1], []string{fmt.Sprintf("… %s", text.Plural(n-maxErrorLines, "line"))}, lines[n-maxErrorLines+1:])
	}
	return lines
}

// sentence is the job in one sentence.
func (s *summary) sentence() string {
	n := make(map[task.State]int)
	unneeded := 0
	for i := range s.st.Tasks {
		t := &s.st.Tasks[i]
		n[t.State]++
		if t.State == task.Cancelled && !task.Against(t.State, errorOf(t).Kind) {
			unneeded++
		}
	}
	total, all := len(s.st.Tasks), text.Plural(len(s.st.Tasks), "task")
	lost := n[task.Cancelled] - unneeded
	left := total - n[task.Succeeded] - n[task.Failed] - n[task.Cancelled]
	time := took(s.total())
	if !s.since.IsZero() {
		time += fmt.Sprintf(", %s of it in this run", took(max(0, cmp.Or(s.st.FinishedAt, s.now).Sub(s.since))))
	}

	state, parts := "", []string(nil)
	some := func(count int, one, many string) {
		switch {
		case count == 1:
			parts = append(parts, "1 "+one)
		case count > 1:
			parts = append(parts, fmt.Sprintf("%d %s", count, many))
		}
	}
	switch s.st.State {
	case task.JobSucceeded:
		state = "succeeded in"
		if unneeded == 0 {
			parts = []string{all}
			break
		}
		some(n[task.Succeeded], "succeeded", "succeeded")
	case task.JobFailed:
		state = "failed after"
		some(n[task.Failed], "failed", "failed")
	case task.JobCancelled:
		state = "was cancelled after"
		some(n[task.Succeeded], "succeeded", "succeeded")
		some(n[task.Failed], "failed", "failed")
	case task.JobBlocked:
		state = "is blocked after"
		some(n[task.Blocked], "waits for a person", "wait for a person")
		some(n[task.Failed], "failed", "failed")
		some(left-n[task.Blocked], "is left", "are left")
	default:
		state = "is not finished after"
		some(n[task.Succeeded], "succeeded", "succeeded")
		some(n[task.Failed], "failed", "failed")
		some(left, "is left", "are left")
	}
	some(lost, "was cancelled", "were cancelled")
	some(unneeded, "was not needed", "were not needed")
	if len(parts) > 0 && parts[0] != all { // "1 of 7 tasks failed, 2 were cancelled"
		count, rest, _ := strings.Cut(parts[0], " ")
		parts[0] = fmt.Sprintf("%s of %s %s", count, all, rest)
	}
	line := fmt.Sprintf("%s %s %s: %s", oneLine(s.st.Name, maxName), s.paint.Paint(text.StateColor(s.st.State), state), time, strings.Join(parts, ", "))
	if s.st.State == task.JobCancelled {
		if by := who(&weaver.TaskInfo{CancelBy: s.st.CancelBy, CancelReason: s.st.CancelReason}); by != "" {
			line += fmt.Sprintf(" (%s)", oneLine(by, maxName))
		}
	}
	return text.Stop(line)
}
