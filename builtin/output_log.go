package builtin

import (
	"io"
	"sync"
)

// log passes the output of both streams to Config.Logs.
type log struct {
	open func() io.WriteCloser // nil: no log

	mu   sync.Mutex
	w    io.WriteCloser
	over bool // open returned nil, or the log was closed
}

// write appends a block to the log. The writer reports its own errors; the command
// continues.
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
