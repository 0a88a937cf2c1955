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
	fullBlock  = 32 << 10  // of those that go on
	minTail    = 4 << 10   // what errors show
	maxTail    = 256 << 10 // of each stream, whatever the inline limit

	// How long the pipes may stay open after the command's group is gone,
	// kept open by a daemon that left the group; with a stopped engine there is less time.
	pipeGrace    = time.Second
	stoppedGrace = 200 * time.Millisecond
	// What a pipe holds when that time is up is still read. Linux lets users
	// make pipes of up to this size.
	pipeSize = 1 << 20
	lateLook = 10 * time.Millisecond
)

// output reads what a command writes, in constant memory: every block is
// emitted live, and the end of each stream is kept.
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
	live  bool // a sink may listen
	tail  tail
	line  partialLine
	ended int   // lines
	mask  *mask // of what is secret
	all   *lines
	log   *log
}

// openOutput makes the pipes. What m masks is nowhere but in them.
func openOutput(ctx context.Context, limit int, m *mask) (*output, error) {
	o := &output{readers: group.New(context.WithoutCancel(ctx))} // the end is read, too
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

// read starts the readers, which emit to the attempt of ctx. They end with
// their pipes.
func (o *output) read(ctx context.Context) {
	for _, s := range []*stream{&o.stdout, &o.stderr} {
		o.readers.Go(s.name, func(context.Context) error {
			s.read(ctx)
			return nil
		})
	}
}

// wait returns when everything is read that the command wrote. Its group is
// gone by now: a pipe that does not end soon is kept open by a daemon.
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
	_ = o.readers.Wait() // reported by wait; without readers it only releases the context
	o.log.close()
	o.lines.stop()
}

// shut closes files whose errors say nothing: pipes, and what was only read.
func shut(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (s *stream) read(ctx context.Context) {
	buf := make([]byte, firstBlock)
	partial := 0 // bytes of a rune whose rest is still to come
	late := false
	for remaining := pipeSize; ; {
		if late {
			_ = s.r.SetReadDeadline(time.Now().Add(lateLook)) // it could be set before
		}
		n, err := s.r.Read(buf[partial:])
		if late {
			remaining -= n
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			// A listener that was slow to take the last block must not cost
			// what the command had written by then.
			late, err = true, nil
		}
		block := buf[:partial+n]
		last := err != nil || remaining <= 0 // the end, or a pipe that cannot be read: there is no more
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

// take emits a block and keeps it.
func (s *stream) take(ctx context.Context, block []byte) {
	if len(block) == 0 {
		return
	}
	s.log.write(block) // first: what was shown can be found there
	if s.live {
		// Not in a handler, or the attempt was given up: no sink listens.
		s.live = weaver.Emit(ctx, s.name, validText(block)) == nil
	}
	s.tail.write(block)
	if n, last := s.line.add(block); n > 0 {
		s.ended += n
		s.all.add(ctx, n, last)
	}
}

// tail keeps the last max bytes of what is written to it.
type tail struct {
	max   int
	buf   []byte // a ring once it is full
	first int    // of the ring
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

// text returns what was kept; it begins with a whole rune.
func (t *tail) text() string {
	b := append(t.buf[t.first:len(t.buf):len(t.buf)], t.buf[:t.first]...)
	if t.cut() {
		b = b[brokenStart(b):]
	}
	return validText(b)
}

// lines is how many lines the stream has, without blank ones at its end.
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

// lastWords returns what an error shows of the output: the last lines of
// stderr, or of stdout when there are none, or of both when they are short;
// and the one line that probably says most.
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

// lastLine is the last line of a text that has no line end behind it, or its
// beginning when it is long.
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

// overwritten is a text as a terminal shows it: of a line that was written
// over and over, as progress bars are, the last version.
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

// lastLines returns the end of a text, without the line end, and whether
// something is missing before it.
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
