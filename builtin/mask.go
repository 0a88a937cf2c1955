package builtin

import (
	"bytes"
	"encoding/base64"
	"io"
	"slices"
	"strings"
)

// masked replaces a secret.
const masked = "***"

// Limits of masking.
const (
	// minSecret is the minimum length of a secret, in characters: a shorter one would
	// match everywhere.
	minSecret = 4
	// minPart is the minimum length, in bytes, for masking a line of a multi-line
	// secret or a piece of an encoding by itself.
	minPart = 8
)

// mask replaces secrets in a stream of arbitrary blocks. It holds back bytes that
// may begin a secret until more bytes decide. It masks the secret itself, each
// long line of it, and its base64 form, alone or within a longer encoded text. A
// line break inserted into any of these does not hide it.
//
// A nil mask has no secrets. A mask serves one stream.
type mask struct {
	patterns *[256][][]byte // by first byte

	held    []byte
	covered int // leading bytes of held that an emitted mask already replaces
	out     []byte
}

// newMask returns nil if there is nothing to mask.
func newMask(secrets []string) *mask {
	if len(secrets) == 0 {
		return nil
	}
	m := &mask{patterns: new([256][][]byte)}
	for _, secret := range secrets {
		secret = strings.TrimSpace(secret)
		m.add(secret)
		m.addEncoded(secret)
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= minPart && line != secret {
				m.add(line)
			}
		}
	}
	return m
}

func (m *mask) add(pattern string) {
	same := func(has []byte) bool { return string(has) == pattern }
	if of := &m.patterns[pattern[0]]; !slices.ContainsFunc(*of, same) {
		*of = append(*of, []byte(pattern))
	}
}

// addEncoded adds the base64 forms of a text.
func (m *mask) addEncoded(text string) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		m.add(enc.EncodeToString([]byte(text)))
		m.add(enc.WithPadding(base64.NoPadding).EncodeToString([]byte(text)))
		// After 0, 1 or 2 bytes of a group of three, the text has different digits. Digits
		// shared with its surroundings are left out.
		for before := range 3 {
			digits := enc.EncodeToString(append(make([]byte, before), text...))
			from, to := (before*8+5)/6, (before+len(text))*8/6
			if to-from >= minPart {
				m.add(digits[from:to])
			}
		}
	}
}

// fresh returns a mask of the same secrets for another stream.
func (m *mask) fresh() *mask {
	if m == nil {
		return nil
	}
	return &mask{patterns: m.patterns}
}

// next takes a block and returns the bytes that are ready. The result is valid
// until the next call.
func (m *mask) next(block []byte) []byte {
	if m == nil {
		return block
	}
	return m.scan(block, false)
}

// rest returns the bytes held back, at the end of the stream.
func (m *mask) rest() []byte {
	if m == nil {
		return nil
	}
	return m.scan(nil, true)
}

// text masks a whole text.
func (m *mask) text(s string) string {
	if m == nil || s == "" {
		return s
	}
	return string(m.fresh().scan([]byte(s), true))
}

// scan processes the held bytes and the block. Secrets may overlap: a mask
// replaces all bytes that belong to any of them.
func (m *mask) scan(block []byte, last bool) []byte {
	buf := append(m.held, block...)
	out, at, end := m.out[:0], 0, m.covered // bytes before end are masked
	for at < len(buf) {
		if m.patterns[buf[at]] == nil {
			if at >= end {
				out = append(out, buf[at])
			}
			at++
			continue
		}
		found, open := m.at(buf[at:])
		if open && !last {
			break
		}
		if found > 0 && at+found > end {
			if at >= end {
				out = append(out, masked...)
			}
			end = at + found
		}
		if at >= end {
			out = append(out, buf[at])
		}
		at++
	}
	m.held = append(buf[:0], buf[at:]...)
	m.covered = max(0, end-at)
	m.out = out
	return out
}

// at returns the length of the longest secret at the beginning of buf, and whether
// a secret may continue after buf.
func (m *mask) at(buf []byte) (found int, open bool) {
	for _, p := range m.patterns[buf[0]] {
		n, more := match(p, buf)
		found = max(found, n)
		open = open || more
	}
	return found, open
}

// match compares a pattern with the beginning of buf and returns the matched
// length, or 0. open reports that buf ends within the pattern. A long pattern may
// have line breaks between its bytes.
func match(pattern, buf []byte) (n int, open bool) {
	breaks := len(pattern) >= minPart
	i, broken := 0, false
	for i < len(pattern) {
		if n == len(buf) {
			return 0, true
		}
		switch b := buf[n]; {
		case b == pattern[i]:
			i++
			broken = b == '\n'
		case breaks && i > 0 && b == '\r': // the next byte must be a line break
			if n+1 < len(buf) && buf[n+1] != '\n' {
				return 0, false
			}
		case breaks && i > 0 && b == '\n' && !broken:
			broken = true
		default:
			return 0, false
		}
		n++
	}
	return n, false
}

// maskReader masks what it reads.
type maskReader struct {
	io.Closer
	src  io.Reader
	mask *mask
	buf  []byte
	out  []byte
	err  error
}

// body returns a body for display and storage.
func (m *mask) body(body io.ReadCloser) io.ReadCloser {
	if m == nil {
		return body
	}
	return &maskReader{Closer: body, src: body, mask: m.fresh(), buf: make([]byte, firstBlock)}
}

// Read implements io.Reader.
func (r *maskReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		n, err := r.src.Read(r.buf)
		r.out, r.err = r.mask.next(r.buf[:n]), err
		if err != nil {
			r.out = append(bytes.Clone(r.out), r.mask.rest()...)
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if len(r.out) > 0 {
		return n, nil
	}
	return n, r.err
}

// maskedError is an error with secrets masked in its text; errors.Is and errors.As
// see the original.
type maskedError struct {
	text string
	err  error
}

// Error implements error.
func (e *maskedError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *maskedError) Unwrap() error { return e.err }

// failure returns an error for display and storage.
func (m *mask) failure(err error) error {
	if m == nil || err == nil {
		return err
	}
	if text := m.text(err.Error()); text != err.Error() {
		return &maskedError{text, err}
	}
	return err
}
