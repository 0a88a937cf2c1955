package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task/event"
)

// show shows changes. The caller holds m.mu, as for every function here except
// say.
func (m *Monitor) show(changes []change, now time.Time) {
	for _, c := range changes {
		switch m.cfg.Format {
		case Lines:
			if m.terse.on {
				m.showTerse(c, now)
				continue
			}
			text, color := m.model.sentence(c, m.cfg.Zone, now)
			if text != "" {
				m.line(text, color, now)
			}
		case Tree:
			if asks(c.event) { // it stays, above the tree
				m.sayLocked(m.model.sentence(c, m.cfg.Zone, now))
			}
		case JSON:
			if c.event != nil {
				m.object(c.event)
			}
		}
	}
}

// object adds an event to the JSON stream.
func (m *Monitor) object(ev event.Event) {
	for _, line := range m.encoder.Lines(ev) {
		m.put(text.PlainJSON(line))
	}
}

// line appends a line with the time to the Lines view.
func (m *Monitor) line(said, color string, now time.Time) {
	m.put(m.paint.Paint(text.Faint, now.In(m.cfg.Zone).Format(time.TimeOnly)) + " " + m.paint.Paint(color, said))
}

// put appends a line for Run to write.
func (m *Monitor) put(line string) {
	m.pending = append(append(m.pending, line...), '\n')
	if m.phase >= ended {
		m.flush()
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// say shows a printable line, without waiting for Out while Run runs.
func (m *Monitor) say(text, color string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sayLocked(text, color)
}

// sayLocked is say for callers that hold mu.
func (m *Monitor) sayLocked(text, color string) {
	switch m.cfg.Format {
	case JSON:
		if m.phase != summed {
			m.put(text)
		}
		return
	case Lines:
		m.line(text, color, time.Now())
		return
	}
	if len(m.above) == maxAbove {
		m.above = m.above[1:]
		m.lost++
	}
	m.above = append(m.above, m.paint.Paint(color, text))
	if m.phase >= ended {
		m.flush()
	}
}

// takeAbove removes and returns the lines to print above the tree.
func (m *Monitor) takeAbove() []string {
	above := m.above
	if m.lost > 0 {
		above = append([]string{fmt.Sprintf("(%s could not be shown: the terminal was too slow)", text.Plural(m.lost, "line"))}, above...)
	}
	m.above, m.lost = nil, 0
	return above
}

// flush writes the pending output without Run. Summary returns its error.
func (m *Monitor) flush() {
	var b strings.Builder
	b.Write(m.pending)
	for _, line := range m.takeAbove() {
		b.WriteString(line + "\n")
	}
	m.pending = nil
	if b.Len() == 0 || m.err != nil {
		return
	}
	if _, err := m.cfg.Out.Write([]byte(b.String())); err != nil {
		m.err = fmt.Errorf("show the job: %w", err)
	}
}
