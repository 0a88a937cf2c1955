package builtin

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// validText returns bytes as UTF-8 that every store accepts: U+FFFD replaces each
// invalid byte and NUL.
func validText(p []byte) string {
	if utf8.Valid(p) && bytes.IndexByte(p, 0) < 0 {
		return string(p)
	}
	var b strings.Builder
	b.Grow(len(p) + len(p)/2)
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		if r == 0 {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		p = p[size:]
	}
	return b.String()
}

// unfinished returns the number of bytes at the end of p that begin an incomplete
// rune.
func unfinished(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if end := p[len(p)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// brokenStart returns the number of bytes at the start of p that end a rune begun
// before p.
func brokenStart(p []byte) int {
	n := 0
	for n < len(p) && n < utf8.UTFMax-1 && !utf8.RuneStart(p[n]) {
		n++
	}
	return n
}

// result returns the output of a command that succeeded, of at most limit bytes as
// JSON.
func (o *output) result(limit int) RunOutput {
	out := RunOutput{
		StdoutBytes:     o.stdout.tail.total,
		StderrBytes:     o.stderr.tail.total,
		StdoutTruncated: true, // for the size; corrected below
		StderrTruncated: true,
	}
	stdout, stderr := o.stdout.tail.text(), o.stderr.tail.text()
	frame, _ := json.Marshal(out) // numbers and flags cannot fail
	room := limit - len(frame) - len(`"stdout":"","stderr":"",`)
	forOut, forErr := shares(encodedLen(stdout), encodedLen(stderr), max(room, 0))
	out.Stdout, out.Stderr = endOf(stdout, forOut), endOf(stderr, forErr)
	out.StdoutTruncated = o.stdout.tail.cut() || len(out.Stdout) < len(stdout)
	out.StderrTruncated = o.stderr.tail.cut() || len(out.Stderr) < len(stderr)
	return out
}

// shares divides room between two texts of sizes a and b: half each, plus what the
// other leaves.
func shares(a, b, room int) (forA, forB int) {
	half := room / 2
	switch {
	case a <= half:
		return a, min(b, room-a)
	case b <= half:
		return min(a, room-b), b
	}
	return half, room - half
}

// endOf returns the longest suffix of s of at most size bytes as JSON.
func endOf(s string, size int) string {
	at := len(s)
	for at > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:at])
		if size -= runeLen(r, n); size < 0 {
			break
		}
		at -= n
	}
	return s[at:]
}

// encodedLen returns the size of a text inside a JSON string, in bytes.
func encodedLen(s string) int {
	total := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		total += runeLen(r, n)
		i += n
	}
	return total
}

// runeLen returns the size of a rune of n bytes as encoding/json writes it. It
// also escapes <, > and &.
func runeLen(r rune, n int) int {
	switch r {
	case '"', '\\', '\b', '\f', '\n', '\r', '\t':
		return 2
	case '<', '>', '&', '\u2028', '\u2029':
		return len(`\u0000`)
	}
	if r < ' ' {
		return len(`\u0000`)
	}
	return n
}
