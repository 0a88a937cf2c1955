package builtin

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// validText returns bytes as UTF-8 that every store can keep: each byte that is
// none, and NUL, becomes U+FFFD.
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

// unfinished returns how many bytes at the end of p are the beginning of a
// rune that may go on behind it.
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

// brokenStart returns how many bytes at the start of p are the end of a rune
// that began before it.
func brokenStart(p []byte) int {
	n := 0
	for n < len(p) && n < utf8.UTFMax-1 && !utf8.RuneStart(p[n]) {
		n++
	}
	return n
}

// result returns the output of a command that succeeded. As JSON it has at
// most limit bytes.
func (o *output) result(limit int) RunOutput {
	out := RunOutput{
		StdoutBytes:     o.stdout.tail.total,
		StderrBytes:     o.stderr.tail.total,
		StdoutTruncated: true, // for the size; corrected below
		StderrTruncated: true,
	}
	stdout, stderr := o.stdout.tail.text(), o.stderr.tail.text()
	frame, _ := json.Marshal(out) // of numbers and flags: cannot go wrong
	room := limit - len(frame) - len(`"stdout":"","stderr":"",`)
	forOut, forErr := shares(encodedLen(stdout), encodedLen(stderr), max(room, 0))
	out.Stdout, out.Stderr = endOf(stdout, forOut), endOf(stderr, forErr)
	out.StdoutTruncated = o.stdout.tail.cut() || len(out.Stdout) < len(stdout)
	out.StderrTruncated = o.stderr.tail.cut() || len(out.Stderr) < len(stderr)
	return out
}

// shares divides room among two who want a and b: each gets half, and what
// the other does not need.
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

// endOf returns the longest end of s that takes at most size bytes as JSON.
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

// encodedLen returns how many bytes the text takes inside a JSON string.
func encodedLen(s string) int {
	total := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		total += runeLen(r, n)
		i += n
	}
	return total
}

// runeLen is what encoding/json makes of a rune of n bytes. It escapes what
// could end a script element, too.
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
