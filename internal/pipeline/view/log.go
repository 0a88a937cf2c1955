package view

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// Logger returns a logger for the engine. It keeps warnings and errors and never
// blocks: the calling goroutine may be renewing leases.
func (m *Monitor) Logger() *slog.Logger { return slog.New(&logHandler{m: m}) }

// logHandler implements slog.Handler.
type logHandler struct {
	m     *Monitor
	attrs []attr
	group string // ends with a dot
}

// attr is an attribute with a plain value.
type attr struct {
	key   string
	value any
}

// logEntry is a line of the engine's log in the JSON view.
type logEntry struct {
	Event   string         `json:"event"` // log
	At      time.Time      `json:"timestamp"`
	Level   slog.Level     `json:"level"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append([]attr(nil), h.attrs...)
	for _, a := range attrs {
		c.attrs = flatten(c.attrs, h.group, a)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	c := *h
	if name != "" {
		c.group = h.group + name + "."
	}
	return &c
}

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := append([]attr(nil), h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		attrs = flatten(attrs, h.group, a)
		return true
	})
	if h.m.cfg.Format == JSON {
		entry := logEntry{Event: "log", At: r.Time.UTC(), Level: r.Level, Message: r.Message, Data: make(map[string]any, len(attrs))}
		for _, a := range attrs {
			entry.Data[a.key] = a.value
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(entry); err != nil {
			return fmt.Errorf("encode a log record: %w", err)
		}
		h.m.say(text.PlainJSON(strings.TrimSuffix(b.String(), "\n")), "")
		return nil
	}
	color := text.Yellow
	if r.Level >= slog.LevelError {
		color = text.Red
	}
	h.m.say(h.m.logLine(r, attrs), color)
	return nil
}

// flatten appends an attribute, or the attributes of a group, with plain values.
func flatten(list []attr, group string, a slog.Attr) []attr {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		if a.Equal(slog.Attr{}) {
			return list
		}
		return append(list, attr{group + a.Key, plainValue(v.Any())})
	}
	if a.Key != "" {
		group += a.Key + "."
	}
	for _, inner := range v.Group() {
		list = flatten(list, group, inner)
	}
	return list
}

// logLine formats a log record for people, with the task's name first as in other
// lines.
func (m *Monitor) logLine(r slog.Record, attrs []attr) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Level, r.Message)
	name := ""
	for _, a := range attrs {
		if a.key == "task_id" {
			if known := m.taskNamed(a.value); known != "" {
				name = known + ": "
				continue
			}
		}
		if name != "" && a.key == "task_type" {
			continue
		}
		fmt.Fprintf(&b, " %s=%s", a.key, valueText(a.value))
	}
	return text.OneLine(name+b.String(), text.MaxLine)
}

// taskNamed returns the name of the job's task with an ID, or "".
func (m *Monitor) taskNamed(value any) string {
	raw, _ := value.(string)
	id, err := task.ParseID(raw)
	if err != nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.model.byID[id]; n != nil {
		return n.name
	}
	return ""
}
