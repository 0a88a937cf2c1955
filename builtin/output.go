package builtin

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/group"
)

const (
	firstBlock = 4 << 10   // most commands write less
	fullBlock  = 32 << 10  // of commands that write more
	minTail    = 4 << 10   // shown by errors
	maxTail    = 256 << 10 // of each stream, for any inline limit

	// Time for the pipes to close after the command's process group is gone, if a
	// daemon outside the group holds them open; less if the engine is stopped.
	pipeGrace    = time.Second
	stoppedGrace = 200 * time.Millisecond
	// After that time, the bytes in the pipe are still read. On Linux, users may
	// create pipes of up to this size.
	pipeSize = 1 << 20
	lateLook = 10 * time.Millisecond
)

// output reads a command's output in constant memory. It emits every block live
// and keeps the end of each stream.
type output struct {
	stdout, stderr stream
	lines          lines
	log            log
	readers        *group.Group
}

// stream is one of the two pipes.
type stream struct {
	name  string
	r, w  *os.File
	live  bool // a sink may receive the blocks
	tail  tail
	line  partialLine
	ended int   // lines
	mask  *mask // masks secrets
	all   *lines
	log   *log
}

// openOutput creates the pipes. The bytes that m masks appear nowhere after the
// pipes.
func openOutput(ctx context.Context, limit int, m *mask) (*output, error) {
	o := &output{readers: group.New(context.WithoutCancel(ctx))} // also read the end of the output
	o.lines.begun = time.Now()
	keep := min(max(limit, minTail), maxTail)
	for _, s := range []*stream{&o.stdout, &o.stderr} {
		*s = stream{name: "stdout", live: true, tail: tail{max: keep}, mask: m.fresh(), all: &o.lines, log: &o.log}
		if s == &o.stderr {
			s.name = "stderr"
		}
		var err error
		if s.r, s.w, err = os.Pipe(); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

// read starts the readers, which emit to the attempt of ctx and end with their
// pipes.
func (o *output) read(ctx context.Context) {
	for _, s := range []*stream{&o.stdout, &o.stderr} {
		o.readers.Go(s.name, func(context.Context) error {
			s.read(ctx)
			return nil
		})
	}
}

// wait returns after all output of the command is read. The process group is gone
// by then: a daemon holds a pipe that does not end soon.
func (o *output) wait(stopped bool) error {
	grace := pipeGrace
	if stopped {
		grace = stoppedGrace
	}
	for _, s := range []*stream{&o.stdout, &o.stderr} {
		if s.r.SetReadDeadline(time.Now().Add(grace)) != nil { // Windows
			cut := time.AfterFunc(grace, func() { shut(s.r) })
			defer cut.Stop()
		}
	}
	return o.readers.Wait()
}

func (o *output) closeWriters() {
	shut(o.stdout.w, o.stderr.w)
	o.stdout.w, o.stderr.w = nil, nil
}

func (o *output) close() {
	o.closeWriters()
	shut(o.stdout.r, o.stderr.r)
	_ = o.readers.Wait() // wait reports it; without readers it only releases the context
	o.log.close()
	o.lines.stop()
}

// shut closes files whose errors do not matter: pipes, and files only read.
func shut(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (s *stream) read(ctx context.Context) {
	buf := make([]byte, firstBlock)
	partial := 0 // bytes of an incomplete rune at the end
	late := false
	for remaining := pipeSize; ; {
		if late {
			_ = s.r.SetReadDeadline(time.Now().Add(lateLook)) // it succeeded before
		}
		n, err := s.r.Read(buf[partial:])
		if late {
			remaining -= n
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			// Output that the command wrote in time must not be lost to a listener that took
			// the last block slowly.
			late, err = true, nil
		}
		block := buf[:partial+n]
		last := err != nil || remaining <= 0 // the end of the stream or a failed pipe: nothing follows
		partial = 0
		if !last {
			partial = unfinished(block)
		}
		if whole := len(block) - partial; whole > 0 {
			s.take(ctx, s.mask.next(block[:whole]))
		}
		if last {
			s.take(ctx, s.mask.rest())
			return
		}
		if len(block) == len(buf) && len(buf) < fullBlock {
			buf = make([]byte, fullBlock)
		}
		copy(buf, block[len(block)-partial:])
	}
}

// take emits and keeps a block.
func (s *stream) take(ctx context.Context, block []byte) {
	if len(block) == 0 {
		return
	}
	s.log.write(block) // first: the log contains everything that was shown
	if s.live {
		// Not in a handler, or the attempt was abandoned: no sink listens.
		s.live = weaver.Emit(ctx, s.name, validText(block)) == nil
	}
	s.tail.write(block)
	if n, last := s.line.add(block); n > 0 {
		s.ended += n
		s.all.add(ctx, n, last)
	}
}

// tail keeps the last max bytes written to it.
type tail struct {
	max   int
	buf   []byte // a ring when full
	first int    // index of the oldest byte in the ring
	total int64
}

func (t *tail) write(p []byte) {
	t.total += int64(len(p))
	if len(p) >= t.max {
		t.buf, t.first = append(t.buf[:0], p[len(p)-t.max:]...), 0
		return
	}
	if room := t.max - len(t.buf); room > 0 {
		n := min(room, len(p))
		t.buf = append(t.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(t.buf[t.first:], p)
		t.first = (t.first + n) % t.max
		p = p[n:]
	}
}

// cut reports whether the beginning is missing.
func (t *tail) cut() bool { return t.total > int64(len(t.buf)) }

// text returns the kept bytes, beginning with a whole rune.
func (t *tail) text() string {
	b := append(t.buf[t.first:len(t.buf):len(t.buf)], t.buf[:t.first]...)
	if t.cut() {
		b = b[brokenStart(b):]
	}
	return validText(b)
}

// lines returns the number of lines of the stream, without blank lines at its end.
func (s *stream) lines() int {
	kept := overwritten(s.tail.text())
	n := s.ended
	if len(s.line) > 0 {
		n++
	}
	blank := lineCount(strings.TrimSuffix(kept, "\n")) - lineCount(strings.TrimRight(kept, "\r\n"))
	return n - blank
}

func lineCount(s string) int {
	if s == "" {
		return 0
	}
	return strings.Count(s, "\n") + 1
}

// lastWords returns the output for an error. tail is the last lines of stderr, or
// of stdout if stderr is empty, or of both if they are short. last is the line
// that is probably most useful.
func (o *output) lastWords() (tail, last string) {
	const maxLines, maxBytes = 20, 4 << 10
	out, outCut := lastLines(o.stdout.tail.text(), maxLines, maxBytes)
	err, errCut := lastLines(o.stderr.tail.text(), maxLines, maxBytes)
	const both = "\nand to stdout:\n"
	last = lastLine(err)
	switch {
	case err == "":
		return out, lastLine(out)
	case out == "" || outCut || errCut || o.stdout.tail.cut() || o.stderr.tail.cut():
		return err, last
	case strings.Count(out, "\n")+strings.Count(err, "\n")+3 > maxLines || len(out)+len(both)+len(err) > maxBytes:
		return err, last
	}
	return err + both + out, last
}

// lastLine returns the last line of a text without a final line break, or the
// beginning of that line if it is long.
func lastLine(s string) string {
	const limit = 200
	s = strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// overwritten returns a text as a terminal shows it: the last version of a line
// that was rewritten, such as a progress bar.
func overwritten(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		text, end := strings.TrimRight(line, "\r\n"), ""
		if strings.HasSuffix(line, "\n") {
			end = "\n"
		}
		b.WriteString(text[strings.LastIndexByte(text, '\r')+1:] + end)
	}
	return b.String()
}

// lastLines returns the end of a text without the final line break, and whether
// lines before it are missing.
func lastLines(s string, lines, size int) (end string, cut bool) {
	s = strings.TrimRight(overwritten(s), "\r\n")
	end = s[len(s)-min(len(s), size):]
	end = end[brokenStart([]byte(end)):]
	at := len(end)
	for range lines {
		if at = strings.LastIndexByte(end[:at], '\n'); at < 0 {
			return end, len(end) < len(s)
		}
	}
	return end[at+1:], true
}
