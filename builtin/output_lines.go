package builtin

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/goweaver/weaver"
)

const (
	progressAfter = time.Second            // short commands cause no write
	progressEvery = 500 * time.Millisecond // minimum interval
	maxLine       = 200                    // characters
)

// lines reports the last line of a long-running command as its progress, which
// other processes can see.
type lines struct {
	begun time.Time

	mu       sync.Mutex
	count    int
	last     []byte
	timer    *time.Timer // set while a report is due
	reported time.Time
	over     bool

	// reporting is held during a report, which waits for the store; mu is not.
	reporting sync.Mutex
}

// add counts n complete lines and keeps the last one unless it is blank.
func (l *lines) add(ctx context.Context, n int, last []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count += n
	if len(last) > 0 {
		l.last = append(l.last[:0], last...)
	}
	if l.timer == nil {
		due := max(progressAfter-time.Since(l.begun), progressEvery-time.Since(l.reported))
		l.timer = time.AfterFunc(max(due, 0), func() { l.report(ctx) })
	}
}

func (l *lines) report(ctx context.Context) {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	l.mu.Lock()
	over, count, message := l.over, l.count, firstRunes(validText(l.last), maxLine)
	l.timer, l.reported = nil, time.Now()
	l.mu.Unlock()
	if !over {
		// Its errors are lease errors: the context or the end of the attempt reports them
		// too.
		_ = weaver.Progress(ctx, float64(count), 0, message)
	}
}

// stop ends the reports and waits for a running one.
func (l *lines) stop() {
	l.mu.Lock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.reporting.Lock()
	defer l.reporting.Unlock()
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// partialLine is the beginning of a line that a later block completes.
type partialLine []byte

const maxPartial = 4 * (maxLine + 1) // bytes

// add returns the number of lines that the block completes, and the last of them
// that is not blank. It keeps the rest of the block.
func (p *partialLine) add(block []byte) (n int, last []byte) {
	end := bytes.LastIndexByte(block, '\n')
	if end < 0 {
		p.begin(block)
		return 0, nil
	}
	last = bytes.TrimRight(block[:end], blanks)
	if at := bytes.LastIndexByte(last, '\n'); at >= 0 {
		last = last[at+1:]
	} else {
		p.begin(last)
		last = bytes.TrimRight(*p, blanks)
	}
	last = bytes.Clone(last[:min(len(last), maxPartial)])
	*p = (*p)[:0]
	p.begin(block[end+1:])
	return bytes.Count(block, []byte{'\n'}), last
}

const blanks = " \t\r\n"

func (p *partialLine) begin(line []byte) {
	*p = append(*p, line[:min(len(line), maxPartial-len(*p))]...)
}
