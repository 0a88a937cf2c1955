package builtin

import (
	"io"
	"sync"
)

// log passes the output of both streams on to Config.Logs.
type log struct {
	open func() io.WriteCloser // nil: nothing is kept

	mu   sync.Mutex
	w    io.WriteCloser
	over bool // it was asked for a writer and has none, or it was closed
}

// write appends a block to the log. The log's writer reports its own errors: the
// command runs on.
func (l *log) write(block []byte) {
	if l.open == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil && !l.over {
		l.w = l.open()
		l.over = l.w == nil
	}
	if l.w != nil {
		_, _ = l.w.Write(block)
	}
}

func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w != nil {
		_ = l.w.Close() // as in write
	}
	l.w, l.over = nil, true
}
