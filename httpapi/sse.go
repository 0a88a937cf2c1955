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

// Streams are responses of server-sent events without an end of their own. A stream ends when its
// client disconnects or reads nothing for Config.StreamTimeout, at the age Config.MaxStreamAge, and
// when the API stops.

const (
	heartbeat   = 15 * time.Second // time without a frame after which a comment is sent
	streamRetry = 2000             // milliseconds until a browser reconnects
	eventStream = "text/event-stream"
)

// errEnded ends the goroutines of a stream.
var errEnded = errors.New("the stream has ended")

// errOld ends a stream whose client should reconnect.
var errOld = errors.New("the stream is old")

// stream is one open stream. Its methods are safe for concurrent use.
type stream struct {
	ctx  context.Context // ends with the stream
	end  context.CancelCauseFunc
	w    http.ResponseWriter
	rc   *http.ResponseController
	most time.Duration // limit of a write

	writing sync.Mutex // held during a write
	over    bool       // no more writes
	failed  bool       // a write failed
	beat    *time.Timer

	deadline sync.Mutex // held while the write deadline is set
}

// stream sends a stream to which run writes, and returns when run has returned. An error of run is
// the stream's last frame, if the client is still connected.
func (c *call) stream(run func(*stream) error) error {
	release, err := c.api.streams.take(c.api.cfg.streamLimits(), c.who.Name)
	if err != nil {
		return err
	}
	defer release()
	if c.api.ctx.Err() != nil {
		return stopping.of("The server is stopping.")
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
	defer time.AfterFunc(age-rand.N(age/10+1), s.retire).Stop() // spread, so that streams that began together end apart
	defer func() {
		if p := recover(); p != nil {
			c.api.panicked(c.r, p)
			panic(http.ErrAbortHandler) // a problem response is not possible any more
		}
	}()
	if err := run(s); err != nil && s.ctx.Err() == nil {
		if f, err := frame("error", "", c.problem(err, "a stream failed")); err == nil {
			_ = s.send(f) // an error means that the client has disconnected
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

// streamOf returns the response of a stream whose events have JSON of a type.
func streamOf[T any](summary string) []answer {
	return []answer{{status: http.StatusOK, media: eventStream, typ: typeOf[T](), headers: []string{"X-Accel-Buffering"}, summary: summary}}
}

// frame returns one event of a stream. If id is "" the client keeps the previous one.
func frame(event, id string, v any) ([]byte, error) {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	return appendFrame(nil, event, id, data.Bytes()), nil
}

// appendFrame appends an event whose data is JSON without inner line breaks.
func appendFrame(b []byte, event, id string, data []byte) []byte {
	b = append(append(b, "event: "...), event...)
	if id != "" {
		b = append(append(b, "\nid: "...), id...)
	}
	b = append(append(b, "\ndata: "...), bytes.TrimRight(data, "\n")...)
	return append(b, "\n\n"...)
}

// open begins the response and the heartbeat.
func (s *stream) open() error {
	s.until(time.Now().Add(s.most))
	if err := s.rc.Flush(); errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("streams need an http.ResponseWriter with Flush: a wrapper between the server and the API hides it: %w", err)
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
	if err != nil { // the client disconnected, or read nothing for too long
		s.failed = true
		s.end(err)
		return err
	}
	s.until(time.Time{}) // HTTP/2 would reset the stream at the deadline
	return nil
}

// until sets the write deadline, unless the stream was cut.
func (s *stream) until(t time.Time) {
	s.deadline.Lock()
	defer s.deadline.Unlock()
	if s.ctx.Err() == nil {
		_ = s.rc.SetWriteDeadline(t) // a test's recorder has no deadline
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

// retire ends the stream after the current write.
func (s *stream) retire() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.end(errOld)
}

// close ends writing. After it returns the stream does nothing more.
func (s *stream) close() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.over = true
	s.beat.Stop()
	s.deadline.Lock()
	defer s.deadline.Unlock()
	if s.end(errEnded); !s.failed {
		_ = s.rc.SetWriteDeadline(time.Now().Add(time.Second)) // for the end of the response
	}
}
