package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// download is a response of any length. It lasts as long as its client continues to read, and ends
// when the API stops. The first write sends status 200.
type download struct {
	ctx   context.Context
	c     *call
	rc    *http.ResponseController
	media string
	begun bool
	end   context.CancelCauseFunc

	release  func()      // ends its count
	forget   func() bool // cancels the effect of the API's stop
	deadline sync.Mutex  // held while the write deadline is set
	over     bool        // the deadline may not be set any more
}

// download begins a response of a media type, unless too many are open. The caller must call its
// close.
func (c *call) download(media string) (*download, error) {
	release, err := c.api.long.take(c.api.cfg.longLimits(), c.who.Name)
	if err != nil {
		return nil, err
	}
	d := &download{c: c, rc: http.NewResponseController(c.w), media: media, release: release}
	d.ctx, d.end = context.WithCancelCause(c.r.Context())
	d.forget = context.AfterFunc(c.api.ctx, func() { d.cut(errStopping) })
	return d, nil
}

// cut ends the response at once, also a write that waits for the client.
func (d *download) cut(why error) {
	d.deadline.Lock()
	defer d.deadline.Unlock()
	if d.end(why); !d.over {
		_ = d.rc.SetWriteDeadline(time.Unix(1, 0))
	}
}

func (d *download) close() {
	d.deadline.Lock()
	defer d.deadline.Unlock()
	d.over = true
	d.forget()
	d.end(nil)
	d.release()
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	if err := d.until(time.Now().Add(d.c.api.cfg.StreamTimeout)); err != nil {
		return 0, err
	}
	if !d.begun {
		d.begun = true
		d.c.w.Header().Set("Content-Type", d.media)
		d.c.w.WriteHeader(http.StatusOK)
	}
	if d.c.r.Method == http.MethodHead {
		return len(p), nil
	}
	return d.c.w.Write(p)
}

// until sets the deadline of the next write, unless the response was cut.
func (d *download) until(t time.Time) error {
	d.deadline.Lock()
	defer d.deadline.Unlock()
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	_ = d.rc.SetWriteDeadline(t) // a test's recorder has no deadline
	return nil
}

// broken ends a response with an error: as a problem, or by closing the connection if a part of it
// was sent.
func (d *download) broken(err error) error {
	c := d.c
	if !d.begun {
		return err
	}
	if c.r.Context().Err() == nil {
		c.api.log.ErrorContext(c.r.Context(), "an answer was not sent to its end", "operation", c.route.id, "path", c.r.URL.Path, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// copyUntil copies until r or ctx ends.
func copyUntil(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// lastHeld withholds the last write until release.
type lastHeld struct {
	w    io.Writer
	held []byte
}

// Write implements io.Writer.
func (l *lastHeld) Write(p []byte) (int, error) {
	if len(l.held) > 0 {
		if _, err := l.w.Write(l.held); err != nil {
			return 0, err
		}
	}
	l.held = append(l.held[:0], p...)
	return len(p), nil
}

// release writes the withheld bytes.
func (l *lastHeld) release() error {
	_, err := l.w.Write(l.held)
	return err
}

// tailOf keeps the end of the written bytes.
type tailOf struct {
	most int
	kept bytes.Buffer
	cut  bool
}

// Write implements io.Writer.
func (t *tailOf) Write(p []byte) (int, error) {
	t.kept.Write(p)
	if more := t.kept.Len() - t.most; more > 0 {
		t.kept.Next(more)
		t.cut = true
	}
	return len(p), nil
}

// bytes returns the end, from the start of a line if it contains one.
func (t *tailOf) bytes() []byte {
	all := t.kept.Bytes()
	if i := bytes.IndexByte(all, '\n'); t.cut && i >= 0 && i+1 < len(all) {
		return all[i+1:]
	}
	return all
}
