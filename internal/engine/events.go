package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// eventRows holds the events of an attempt that are to be stored (Config.StoreLogs, StoreEvents) and are not stored
// yet. They are written with the next record or with the end of the attempt, and separately after storeEventsEvery.
//
// A reader continues after the last number that it saw, so rows must become visible in the order of their numbers. A
// number is therefore drawn together with the place in the list, and only one write is in progress at a time. Events
// of the task itself (started, ended) have no row: readers derive them from the task and its attempts.
//
// Crash before a write: the events since the last write are lost, except those of completed steps, which readers also
// derive.
type eventRows struct {
	mu     sync.Mutex
	list   []store.EventRow
	timer  *time.Timer // writes them if no other write does
	closed bool        // the end of the attempt has taken the last ones
	full   bool        // some were dropped
	soon   bool        // a chunk is waiting

	writing sync.Mutex  // held while rows are written
	begun   atomic.Bool // the attempt has written rows
	inTx    atomic.Int32
}

const (
	storeEventsEvery = 200 * time.Millisecond
	// storeChunksEvery replaces storeEventsEvery when a chunk of a stream is waiting, because a person may be reading
	// the stream.
	storeChunksEvery = 25 * time.Millisecond
	// maxEventRows is the maximum number of waiting rows while the store cannot be written.
	maxEventRows = 20 * store.MaxEvents
)

// emit makes an event of the attempt, if a listener wants it, and emits it.
func (a *Attempt) emit(of func(event.Header) event.Event) {
	masked := func(h event.Header) event.Event { return a.masked(of(h)) }
	if a.env.StoreLogs || a.env.StoreEvents {
		a.env.emit(a.keepEvent(masked))
	} else if a.env.listensToAll() {
		a.env.emit(masked(a.header()))
	}
}

// keepEvent makes an event, and its row if it is to be stored.
func (a *Attempt) keepEvent(of func(event.Header) event.Event) event.Event {
	_, isLog := of(event.Header{}).(event.LogWritten)
	if isLog && !a.env.StoreLogs || !isLog && !a.env.StoreEvents {
		return of(a.header())
	}
	typ, body, err := event.Body(of) // runs code of the handler, so before the lock
	if err != nil {
		a.logger().Warn("an event cannot be stored", "event", typ, "error", err)
		return of(a.header())
	}
	h, waiting := a.rows.add(a, store.EventRow{Log: isLog, Type: typ, Body: body})
	if waiting >= store.MaxEvents && a.rows.inTx.Load() == 0 {
		a.flushEvents()
	}
	return of(h)
}

// add draws a number for a row and adds it. It returns the number of waiting rows.
func (e *eventRows) add(a *Attempt, row store.EventRow) (h event.Header, waiting int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h = a.header()
	switch {
	case e.closed:
		return h, 0
	case len(e.list) >= maxEventRows:
		if !e.full {
			e.full = true
			a.logger().Warn("events are not stored: too many wait for the store", "waiting", len(e.list))
		}
		return h, len(e.list)
	}
	row.Seq, row.At = h.Sequence, h.At
	e.list = append(e.list, row)
	soon := row.Type == event.StreamChunk{}.Type()
	switch {
	case e.timer == nil && soon:
		e.timer = time.AfterFunc(storeChunksEvery, a.flushEvents)
	case e.timer == nil:
		e.timer = time.AfterFunc(storeEventsEvery, a.flushEvents)
	case soon && !e.soon:
		e.timer.Reset(storeChunksEvery)
	}
	e.soon = e.soon || soon
	return h, len(e.list)
}

// take returns the rows of the next write.
func (e *eventRows) take() []store.EventRow {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.list), store.MaxEvents)
	rows := e.list[:n:n]
	if e.list = e.list[n:]; len(e.list) == 0 {
		e.list, e.soon = nil, false
		if e.timer != nil {
			e.timer.Stop()
			e.timer = nil
		}
	}
	return rows
}

// putBack returns the rows of a write that may not have happened. Writing a stored row again does not change it.
func (e *eventRows) putBack(a *Attempt, rows []store.EventRow) {
	if len(rows) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(rows, e.list...)
	if e.timer == nil && !e.closed {
		e.timer = time.AfterFunc(storeEventsEvery, a.flushEvents)
	}
}

// flushEvents writes the waiting rows.
func (a *Attempt) flushEvents() {
	a.rows.writing.Lock()
	defer a.rows.writing.Unlock()
	a.writeEvents(0)
}

// writeEvents writes rows until at most left rows wait. It reports success.
func (a *Attempt) writeEvents(left int) bool {
	e := &a.rows
	e.mu.Lock()
	e.timer, e.soon = nil, false
	closed := e.closed
	e.mu.Unlock()
	for !closed && e.waiting() > left {
		rows := e.take()
		res := a.recorder.record(store.Record{Lease: a.lease, Events: rows}, 1)
		var storeErr *KindError
		switch err := a.answer(res.Err); {
		case err == nil:
			e.begun.Store(true)
		case errors.As(err, &storeErr):
			a.env.repeats.warn(a.logger(), "store events", res.Err)
			e.putBack(a, rows)
			return false
		default:
			return false
		}
	}
	return true
}

func (e *eventRows) waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.list)
}

// withEvents adds the waiting rows to a record, unless other rows are being written. The first write of an attempt
// always has them: a reader that sees a step then also sees that there are rows. done reports whether the record was
// stored.
func (a *Attempt) withEvents(rec *store.Record) (done func(stored bool)) {
	e := &a.rows
	if !a.env.StoreLogs && !a.env.StoreEvents {
		return func(bool) {}
	}
	if !e.begun.Load() {
		e.writing.Lock()
	} else if !e.writing.TryLock() {
		return func(bool) {}
	}
	rec.Events = e.take()
	return func(stored bool) {
		if stored {
			e.begun.Store(true)
		} else {
			e.putBack(a, rec.Events)
		}
		e.writing.Unlock()
	}
}

// closeEvents adds the waiting rows to the end of the attempt. No more rows are added after that.
func (a *Attempt) closeEvents(fin *store.Finish) {
	e := &a.rows
	if !a.env.StoreLogs && !a.env.StoreEvents {
		return
	}
	if p := fin.Progress; p != nil {
		a.lastProgress = a.keepEvent(func(h event.Header) event.Event { return event.Progress{Header: h, Progress: *p} })
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	written := a.writeEvents(store.MaxEvents)
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	fin.Events = e.take()
	if n := e.waiting(); n > 0 {
		a.logger().Warn("events are not stored: the store cannot be written", "events", n, "lost", !written)
	}
}
