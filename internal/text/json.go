package text

import (
	"fmt"
	"strings"
	"unicode"
)

// escapes maps the escapes that encoding/json writes for HTML safety to their characters.
var escapes = map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}

// PlainJSON returns JSON with <, > and & unescaped. By default encoding/json records them as \u003c, \u003e and
// \u0026, which mean the same but are hard to read. PlainJSON escapes characters that control a terminal and that
// encoding/json leaves unescaped: DEL, C1, and those that change the direction of the text that follows.
func PlainJSON(raw string) string { return escapeActing(plainHTML(raw)) }

func escapeActing(raw string) string {
	acts := func(r rune) bool { return r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Bidi_Control, r) }
	if !strings.ContainsFunc(raw, acts) {
		return raw
	}
	var b strings.Builder
	for _, r := range raw {
		if acts(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func plainHTML(raw string) string {
	if !strings.Contains(raw, `\u00`) {
		return raw
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			b.WriteString(raw)
			return b.String()
		}
		b.WriteString(raw[:i])
		raw = raw[i:]
		if len(raw) >= 6 {
			if c, html := escapes[strings.ToLower(raw[:6])]; html && raw[1] == 'u' {
				b.WriteByte(c)
				raw = raw[6:]
				continue
			}
		}
		b.WriteString(raw[:2]) // an escaped backslash starts no other escape
		raw = raw[2:]
	}
}
