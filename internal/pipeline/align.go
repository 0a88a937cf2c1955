package pipeline

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// aligner lays the tokens over the source. That gives each its exact place,
// and shows where the lexer loses text without a word, as it does with tabs:
// a command must not run without some of its characters.
type aligner struct {
	src *source
	r   *reporter
	at  int // offset of what no token has covered yet
}

// align puts the byte offset of each token into its Position, up to the first
// that is invalid, and reports what is lost.
func (a *aligner) align(tokens token.Tokens) {
	var before *token.Token
	for _, tok := range tokens {
		if tok.Type == token.InvalidType {
			return
		}
		a.white()
		tok.Position.Offset = a.at
		from := a.at
		switch tok.Type {
		case token.DoubleQuoteType:
			if !a.doubleQuoted() {
				return
			}
		default:
			if !a.cover(tok.Origin) {
				a.unread(from)
				return
			}
			blockText := before != nil && (before.Type == token.LiteralType || before.Type == token.FoldedType)
			switch tab := strings.IndexByte(a.src.text[from:a.at], '\t'); {
			case blockText || !lost(tok):
			case tab >= 0:
				a.r.add(a.src.at(from+tab, from+tab+1), "a tab in a text without quotes", quoteHint)
			default:
				a.unread(from)
			}
		}
		if tok.Type != token.CommentType {
			before = tok
		}
	}
	if a.white(); a.at < len(a.src.text) {
		a.unread(a.at)
	}
}

func (a *aligner) unread(at int) {
	a.r.add(a.src.at(at, at+1), "this text cannot be read as it is", "put it in quotes")
}

func (a *aligner) white() {
	for a.at < len(a.src.text) && isWhite(a.src.text[a.at]) {
		a.at++
	}
}

func isWhite(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// cover goes on in the source by what a token was made of.
func (a *aligner) cover(origin string) bool {
	for i := range len(origin) {
		if isWhite(origin[i]) {
			continue
		}
		a.white()
		if a.at == len(a.src.text) || a.src.text[a.at] != origin[i] {
			return false
		}
		a.at++
	}
	return true
}

// lost reports whether the value of a text without quotes is less than what
// it was made of.
func lost(tok *token.Token) bool {
	switch tok.Type {
	case token.StringType, token.IntegerType, token.FloatType, token.BinaryIntegerType, token.OctetIntegerType,
		token.HexIntegerType, token.BoolType, token.NullType, token.InfinityType, token.NanType, token.MergeKeyType:
	default:
		return false
	}
	squeeze := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r == ' ' || r == '\n' {
				return -1
			}
			return r
		}, strings.Trim(text, " \t\n"))
	}
	return squeeze(tok.Value) != squeeze(tok.Origin)
}

// doubleQuoted goes to the end of a text in double quotes. It refuses what the
// lexer takes for some other character: \x, \u and \U without their
// hexadecimal digits, and half of a surrogate pair; and tabs, after which the
// lexer skips a character behind the closing quote.
func (a *aligner) doubleQuoted() bool {
	text := a.src.text
	if a.at == len(text) || text[a.at] != '"' {
		a.unread(a.at)
		return false
	}
	for i := a.at + 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			a.at = i + 1
			return true
		case '\t':
			a.r.add(a.src.at(i, i+1), "a tab in double quotes", `write \t, or use single quotes`)
			return false
		case '\\':
			i += a.escape(i)
		}
	}
	a.at = len(text) // cannot be: the lexer has seen the end
	return true
}

// escape checks what a backslash begins, and returns how many bytes follow it.
func (a *aligner) escape(i int) int {
	text := a.src.text
	digits := 0
	if i+1 < len(text) {
		digits = map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[i+1]]
	}
	if digits == 0 {
		return 1
	}
	code, given := hexadecimal(text[i+2:], digits)
	switch {
	case given < digits:
		a.r.add(a.src.at(i, i+2), fmt.Sprintf(`\%c wants %d hexadecimal digits after it`, text[i+1], digits), `write \\ for a backslash, or put the text in single quotes`)
		return 1 + given
	case code >= 0xDC00 && code <= 0xDFFF, code > 0x10FFFF, digits == 8 && code >= 0xD800 && code <= 0xDFFF:
		a.r.add(a.src.at(i, i+2+digits), "this is no character", "write the character itself")
	case code >= 0xD800 && code <= 0xDBFF:
		return 1 + digits + 6 // the lexer has seen that the other half follows
	}
	return 1 + digits
}

func hexadecimal(text string, digits int) (code, given int) {
	for given < digits && given < len(text) {
		c := text[given] | 0x20
		switch {
		case c >= '0' && c <= '9':
			code = code<<4 + int(c-'0')
		case c >= 'a' && c <= 'f':
			code = code<<4 + int(c-'a') + 10
		default:
			return code, given
		}
		given++
	}
	return code, given
}
