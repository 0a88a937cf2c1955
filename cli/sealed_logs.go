package cli

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/attemptlog"
)

// logSealer encrypts and decrypts the logs of commands. A sealed log is a text file: each piece of output is a line
// with the key ID, the number of the piece and the encrypted bytes. So it may be truncated or lack its middle, like
// any log.
type logSealer struct {
	codec     codec.Codec // nil: logs are written in plain text, and sealed logs cannot be read
	namespace string
}

// sealedLine is the prefix of a sealed line. Plain text contains no NUL.
const sealedLine = "\x00weaver sealed "

// longestLine limits a line of a sealed log: a piece has at most 64 KiB.
const (
	logPiece    = 64 << 10
	longestLine = 4 * logPiece
)

func (s *logSealer) place(a attemptlog.Attempt, n string) []byte {
	return fmt.Appendf(nil, "weaver log v1\x00%s\x00%s\x00%d\x00%s", s.namespace, a.Task, a.No, n)
}

// writer returns a writer for the log of an attempt. It closes w.
func (s *logSealer) writer(a attemptlog.Attempt, w io.WriteCloser) io.WriteCloser {
	if s == nil || s.codec == nil {
		return w
	}
	return &logWriter{WriteCloser: w, s: s, of: a}
}

type logWriter struct {
	io.WriteCloser
	s  *logSealer
	of attemptlog.Attempt
	n  int
}

// Write implements io.Writer.
func (w *logWriter) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		piece := p[:min(len(p), logPiece)]
		w.n++
		n := fmt.Sprint(w.n)
		sealed, err := w.s.codec.Seal(piece, w.s.place(w.of, n))
		if err != nil {
			return written, fmt.Errorf("seal the output of a command: %w", err)
		}
		line := fmt.Sprintf("%s%s %s %s\n", sealedLine, sealed.Key, n, base64.StdEncoding.EncodeToString(sealed.Bytes))
		if _, err := io.WriteString(w.WriteCloser, line); err != nil {
			return written, err
		}
		written, p = written+len(piece), p[len(piece):]
	}
	return written, nil
}

// reader returns a reader of the decrypted log. It closes r.
func (s *logSealer) reader(a attemptlog.Attempt, r io.ReadCloser) io.ReadCloser {
	return &logReader{s: s, of: a, r: r, in: bufio.NewReaderSize(r, longestLine)}
}

type logReader struct {
	s    *logSealer
	of   attemptlog.Attempt
	r    io.Closer
	in   *bufio.Reader
	line []byte // an incomplete line
	out  []byte
}

// Read implements io.Reader. After io.EOF a later Read returns the bytes added since.
func (l *logReader) Read(p []byte) (int, error) {
	for len(l.out) == 0 {
		part, err := l.in.ReadSlice('\n')
		l.line = append(l.line, part...)
		whole := err == nil
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		sealed := bytes.HasPrefix(l.line, []byte(sealedLine[:min(len(sealedLine), len(l.line))])) && len(l.line) <= longestLine
		if sealed && !whole { // the rest may follow
			if errors.Is(err, io.EOF) {
				return 0, io.EOF
			}
			continue
		}
		line := l.line
		l.line = nil
		if !sealed {
			l.out = line
			if len(line) == 0 {
				return 0, err
			}
			continue
		}
		if l.out, err = l.open(string(line)); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.out)
	l.out = l.out[n:]
	return n, nil
}

// open decrypts the piece of a line.
func (l *logReader) open(line string) ([]byte, error) {
	damaged := []byte("[… a sealed piece of this output is not whole]\n")
	parts := strings.Fields(strings.TrimPrefix(line, sealedLine))
	if !strings.HasPrefix(line, sealedLine) || len(parts) != 3 {
		return damaged, nil
	}
	sealed := codec.Sealed{Key: parts[0]}
	var err error
	if sealed.Bytes, err = base64.StdEncoding.DecodeString(parts[2]); err != nil {
		return damaged, nil
	}
	if err = codec.ErrNoCodec; l.s != nil && l.s.codec != nil {
		var plain []byte
		if plain, err = l.s.codec.Open(sealed, l.s.place(l.of, parts[1])); err == nil {
			return plain, nil
		}
	}
	return nil, badInput("", "the log of task %s is sealed with the key %q: %w", l.of.Task, sealed.Key, err)
}

// Close implements io.Closer.
func (l *logReader) Close() error { return l.r.Close() }
