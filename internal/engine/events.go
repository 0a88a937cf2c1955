package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// eventRows are the events of an attempt that are to be stored (Config.StoreLogs,
// StoreEvents) and are not yet. They travel with the next record or with the end of
// the attempt, and have a record of their own after storeEventsEvery.
//
// A reader goes on behind the last number that it saw, so rows become visible in the
// order of their numbers: a number is drawn together with the place in the list, and
// one write is under way at a time. What happens to the task itself (started, ended)
// has no row: readers derive it from the task and its attempts.
//
// Crash before a write: the events since the last one are lost, but for those of steps
// that completed, which readers derive too.
type eventRows struct {
	mu     sync.Mutex
	list   []store.EventRow
	timer  *time.Timer // writes them when nothing else does
	closed bool        // the end of the attempt has taken the last ones
	full   bool        // some were dropped
	soon   bool        // a chunk waits among them

	writing sync.Mutex  // held while rows are written
	begun   atomic.Bool // the attempt has written some
	inTx    atomic.Int32
}

const (
	storeEventsEvery = 200 * time.Millisecond
	// storeChunksEvery is storeEventsEvery with a chunk of a stream among the rows, which
	// somebody may be reading.
	storeChunksEvery = 25 * time.Millisecond
	// maxEventRows is how many rows wait while the store cannot be written.
	maxEventRows = 20 * store.MaxEvents
)

// emit makes an event of the attempt, if it is wanted, and emits it.
func (a *Attempt) emit(of func(event.Header) event.Event) {
	masked := func(h event.Header) event.Event { return a.masked(of(h)) }
	if a.env.StoreLogs || a.env.StoreEvents {
		a.env.emit(a.keepEvent(masked))
	} else if a.env.listensToAll() {
		a.env.emit(masked(a.header()))
	}
}

// keepEvent makes an event, and a row of it if it is to be stored.
func (a *Attempt) keepEvent(of func(event.Header) event.Event) event.Event {
	_, isLog := of(event.Header{}).(event.LogWritten)
	if isLog && !a.env.StoreLogs || !isLog && !a.env.StoreEvents {
		return of(a.header())
	}
	typ, body, err := event.Body(of) // runs code of the handler: before the lock
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

// add draws a number for a row and adds it. It returns how many wait.
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

// putBack returns the rows of a write that may not have happened. Those that did are
// the same when they come again.
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

// flushEvents writes the rows that wait.
func (a *Attempt) flushEvents() {
	a.rows.writing.Lock()
	defer a.rows.writing.Unlock()
	a.writeEvents(0)
}

// writeEvents writes rows until at most so many wait. It reports whether it could.
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

// withEvents gives a record the rows that wait, unless others are being written. The
// first write of an attempt always has them: who sees a step sees then that there are
// rows. done says whether the record was stored.
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

// closeEvents gives the end of the attempt the rows that wait. No more are added.
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
