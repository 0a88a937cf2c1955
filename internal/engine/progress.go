package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// progressEvery limits the rate at which a task's progress is written. The latest report is always written, at the
// latest with the end of the attempt.
const progressEvery = 200 * time.Millisecond

// progress holds the latest unwritten report.
type progress struct {
	latest  *task.Progress
	written time.Time
	timer   *time.Timer // writes latest when no further report comes

	// floor is the last report of earlier attempts until this attempt has reported as much. It is nil without
	// replayed steps or without a report.
	floor *task.Progress
	// ahead counts the recorded steps that this attempt has not reached: until then its code repeats earlier reports.
	ahead int

	// flushing is held while a report is written and its event emitted.
	flushing sync.Mutex
}

// replays sets the number of recorded steps and the last report at the start of an attempt.
func (p *progress) replays(steps int, last *task.Progress) {
	if p.ahead = steps; steps > 0 {
		p.floor = last
	}
}

// reached records that the attempt reached a step. An unrecorded step means that all recorded steps were passed or
// renamed.
func (p *progress) reached(onRecord bool) {
	if onRecord {
		p.ahead--
	} else {
		p.ahead = 0
	}
}

// repeats reports whether a report does not exceed a report of an earlier attempt: progress does not go back during a
// replay. A report with another total belongs to another phase.
func (p *progress) repeats(report *task.Progress) bool {
	if p.floor == nil {
		return false
	}
	if p.ahead > 0 || report.Total == p.floor.Total && report.Current < p.floor.Current {
		return true
	}
	p.floor = nil
	return false
}

// take returns the unwritten report and clears it.
func (p *progress) take() *task.Progress {
	latest := p.latest
	p.latest = nil
	return latest
}

// Progress reports the progress of the task. Like a step it needs a valid lease. The event of a report follows its
// write, so a report replaced before its write has no event.
func (a *Attempt) Progress(ctx context.Context, p task.Progress) error {
	for _, n := range []float64{p.Current, p.Total} {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("progress: %v of %v: want finite numbers, and a total of 0 when it is unknown", p.Current, p.Total)
		}
	}
	p.Message = a.hide(sanitize(p.Message))
	a.mu.Lock()
	switch {
	case a.over:
		a.mu.Unlock()
		return ErrAttemptOver
	case a.suspended:
		a.mu.Unlock()
		return ErrSuspended
	}
	if a.leadsToUndos(ctx) {
		a.mu.Unlock()
		return nil
	}
	if err := a.checkValidity(ctx); err != nil {
		a.mu.Unlock()
		return err
	}
	if a.progress.repeats(&p) {
		a.mu.Unlock()
		return nil
	}
	a.progress.latest = &p
	due := progressEvery - time.Since(a.progress.written)
	if due > 0 {
		if a.progress.timer == nil {
			a.progress.timer = time.AfterFunc(due, a.flushLate)
		}
		a.mu.Unlock()
		return nil
	}
	a.mu.Unlock()
	return a.flushProgress()
}

// flushLate writes the last report of a handler that stopped reporting. The next write of the attempt meets the same
// errors.
func (a *Attempt) flushLate() {
	a.mu.Lock()
	a.progress.timer = nil
	a.mu.Unlock()
	_ = a.flushProgress()
}

// flushProgress writes the latest report, unless the attempt is over: then its end has the report.
func (a *Attempt) flushProgress() error {
	a.progress.flushing.Lock()
	defer a.progress.flushing.Unlock()
	a.mu.Lock()
	if a.over {
		a.mu.Unlock()
		return ErrAttemptOver
	}
	p := a.progress.take()
	a.progress.written = time.Now()
	a.mu.Unlock()
	if p == nil {
		return nil
	}
	res := a.recorder.record(store.Record{Lease: a.lease, Progress: p}, 1)
	err := a.answer(res.Err)
	var storeErr *KindError
	switch {
	case err == nil:
		a.emitProgress(p)
		return nil
	case !errors.As(err, &storeErr):
		return err
	}
	// A store error does not end the attempt because of a report: the next report or the end of the attempt writes
	// it.
	a.env.repeats.warn(a.logger(), "record progress", res.Err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress.latest == nil {
		a.progress.latest = p
	}
	return nil
}

// emitProgress emits the event of a written report, if not nil.
func (a *Attempt) emitProgress(p *task.Progress) {
	if p != nil {
		a.emit(func(h event.Header) event.Event { return event.Progress{Header: h, Progress: *p} })
	}
}

// stopProgress stops the writing of reports of an attempt that is over. It waits for a write in progress.
func (a *Attempt) stopProgress() {
	a.mu.Lock()
	if a.progress.timer != nil {
		a.progress.timer.Stop()
	}
	a.mu.Unlock()
	a.progress.flushing.Lock()
	defer a.progress.flushing.Unlock()
}

// Emit passes a piece of live output to the listeners. It writes nothing, so it needs no lease; an attempt that is
// over emits nothing.
func (a *Attempt) Emit(stream string, data any) error {
	a.mu.Lock()
	over := a.over
	a.mu.Unlock()
	if over {
		return ErrAttemptOver
	}
	a.emit(func(h event.Header) event.Event { return event.StreamChunk{Header: h, Stream: stream, Data: data} })
	return nil
}

// Log returns the logger of the task: the engine's, with the task, the attempt and the step of ctx on every line.
// Each line is also an event.
func (a *Attempt) Log(ctx context.Context) *slog.Logger {
	l := a.logger()
	step := InStep(ctx)
	if step != "" {
		l = l.With("step", step)
	}
	h := slog.Handler(&eventHandler{Handler: l.Handler(), a: a, step: step})
	if a.env.LogAttrs != nil {
		if attrs := a.env.LogAttrs(ctx); len(attrs) > 0 {
			h = h.WithAttrs(attrs)
		}
	}
	return slog.New(h)
}

// eventHandler turns log lines into events and passes them to the real handler.
type eventHandler struct {
	slog.Handler
	a     *Attempt
	step  string
	attrs []slog.Attr
	group string
}

// Enabled accepts lines for events that the engine's logger drops.
func (h *eventHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.events(level) || h.Handler.Enabled(ctx, level)
}

// events reports whether lines of a level become events.
func (h *eventHandler) events(level slog.Level) bool {
	return level >= slog.LevelInfo && (h.a.env.StoreLogs || h.a.env.listensToAll())
}

// Handle implements slog.Handler.
func (h *eventHandler) Handle(ctx context.Context, r slog.Record) error {
	r = h.a.maskRecord(&r)
	if h.events(r.Level) {
		h.emit(&r)
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// emit emits the event of a line.
func (h *eventHandler) emit(r *slog.Record) {
	data := make(map[string]any, len(h.attrs)+r.NumAttrs())
	add := func(attr slog.Attr) bool {
		data[h.group+attr.Key] = attr.Value.Resolve().Any()
		return true
	}
	for _, attr := range h.attrs {
		data[attr.Key] = attr.Value.Resolve().Any()
	}
	r.Attrs(add)
	h.a.emit(func(head event.Header) event.Event {
		return event.LogWritten{Header: head, Step: h.step, Level: r.Level, Message: r.Message, Data: data}
	})
}

// WithAttrs implements slog.Handler.
func (h *eventHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	masked := make([]slog.Attr, len(attrs))
	for i := range attrs {
		masked[i] = h.a.maskAttr(attrs[i])
	}
	attrs = masked
	c.Handler = h.Handler.WithAttrs(attrs)
	c.attrs = append([]slog.Attr{}, h.attrs...)
	for _, attr := range attrs {
		attr.Key = h.group + attr.Key
		c.attrs = append(c.attrs, attr)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *eventHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithGroup(name)
	c.group = h.group + name + "."
	return &c
}
