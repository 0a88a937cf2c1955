package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Streams are answers of server-sent events that have no end of their own. One ends when
// its client goes or reads nothing for Config.StreamTimeout, when it is as old as
// Config.MaxStreamAge has it, and when the API stops.

const (
	heartbeat   = 15 * time.Second // after so long without a frame a comment is sent
	streamRetry = 2000             // milliseconds until a browser connects again
	eventStream = "text/event-stream"
)

// errEnded ends what a stream has begun.
var errEnded = errors.New("the stream has ended")

// errOld ends a stream whose client is to connect again.
var errOld = errors.New("the stream is old")

// stream is one open stream. Its methods may be called by several goroutines.
type stream struct {
	ctx  context.Context // ends with the stream
	end  context.CancelCauseFunc
	w    http.ResponseWriter
	rc   *http.ResponseController
	most time.Duration // for a write

	writing sync.Mutex // held during a write
	over    bool       // nothing may be written any more
	failed  bool       // a write did
	beat    *time.Timer

	deadline sync.Mutex // held while the deadline of writes is set
}

// stream answers with a stream, which run writes to. It returns when run has: an error of
// run, while the client is still there, is the stream's last frame.
func (c *call) stream(run func(*stream) error) error {
	release, err := c.api.streams.take(c.api.cfg.streamLimits(), c.who.Name)
	if err != nil {
		return err
	}
	defer release()
	if c.api.ctx.Err() != nil {
		return stopping.of("The server stops.")
	}
	s := &stream{w: c.w, rc: http.NewResponseController(c.w), most: c.api.cfg.StreamTimeout}
	s.ctx, s.end = context.WithCancelCause(c.r.Context())
	defer s.end(nil)
	defer context.AfterFunc(c.api.ctx, func() { s.cut(errStopping) })()
	c.streamHeaders()
	if err := s.open(); err != nil {
		c.w.Header().Del("X-Accel-Buffering")
		return err
	}
	defer s.close()
	age := c.api.cfg.MaxStreamAge
	defer time.AfterFunc(age-rand.N(age/10+1), s.retire).Stop() // not all that began together
	defer func() {
		if p := recover(); p != nil {
			c.api.panicked(c.r, p)
			panic(http.ErrAbortHandler) // a problem cannot be answered any more
		}
	}()
	if err := run(s); err != nil && s.ctx.Err() == nil {
		if f, err := frame("error", "", c.problem(err, "a stream failed")); err == nil {
			_ = s.send(f) // the client has gone: nobody to tell
		}
	}
	return nil
}

// streamHeaders sets the headers of a stream.
func (c *call) streamHeaders() {
	h := c.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// streamOf is the success of a stream whose events have JSON of a type.
func streamOf[T any](summary string) []answer {
	return []answer{{status: http.StatusOK, media: eventStream, typ: typeOf[T](), headers: []string{"X-Accel-Buffering"}, summary: summary}}
}

// frame makes one event of a stream. An id of "" leaves that of the event before.
func frame(event, id string, v any) ([]byte, error) {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	return appendFrame(nil, event, id, data.Bytes()), nil
}

// appendFrame adds an event whose data is JSON, which has no line breaks but at its end.
func appendFrame(b []byte, event, id string, data []byte) []byte {
	b = append(append(b, "event: "...), event...)
	if id != "" {
		b = append(append(b, "\nid: "...), id...)
	}
	b = append(append(b, "\ndata: "...), bytes.TrimRight(data, "\n")...)
	return append(b, "\n\n"...)
}

// open begins the answer, and the heartbeat.
func (s *stream) open() error {
	s.until(time.Now().Add(s.most))
	if err := s.rc.Flush(); errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("streams need an http.ResponseWriter that can be flushed, and what stands between the server and the API hides that it can: %w", err)
	}
	s.writing.Lock()
	s.beat = time.AfterFunc(heartbeat, func() { _ = s.send([]byte(":\n\n")) }) // an error ends the stream
	s.writing.Unlock()
	_ = s.send(fmt.Appendf(nil, "retry: %d\n\n", streamRetry)) // an error ends the stream
	return nil
}

// send writes frames to the client. After an error the stream is over.
func (s *stream) send(frames []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.over || s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	s.beat.Reset(heartbeat)
	s.until(time.Now().Add(s.most))
	_, err := s.w.Write(frames)
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil { // the client has gone, or read nothing for too long
		s.failed = true
		s.end(err)
		return err
	}
	s.until(time.Time{}) // HTTP/2 would reset the stream at the deadline
	return nil
}

// until sets the deadline of writes, unless the stream has been cut.
func (s *stream) until(t time.Time) {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	if s.ctx.Err() == nil {
		_ = s.rc.SetWriteDeadline(t) // a recorder of a test has none
	}
}

// cut ends the stream at once, also a write that waits for the client.
func (s *stream) cut(why error) {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	if s.ctx.Err() == nil {
		s.end(why)
		_ = s.rc.SetWriteDeadline(time.Unix(1, 0))
	}
}

// retire ends the stream after the write that is under way.
func (s *stream) retire() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.end(errOld)
}

// close ends the writing. The stream does nothing more when it has returned.
func (s *stream) close() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.over = true
	s.beat.Stop()
	s.deadline.Lock()
	defer s.deadline.Unlock()
	if s.end(errEnded); !s.failed {
		_ = s.rc.SetWriteDeadline(time.Now().Add(time.Second)) // for the end of the answer
	}
}
