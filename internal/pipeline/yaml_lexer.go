package pipeline

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Only this file examines the raw text. Each check works around a defect of the
// lexer of goccy/go-yaml v1.19.2, which reports no error in these cases:
//
//   - It accepts bytes that are not UTF-8 and control characters (checkBytes).
//   - Its time grows with the square of the empty lines after a block scalar,
//     of < in a row, and of the text after tabs in double quotes (checkSize).
//   - It drops tabs, and sometimes more, from a plain scalar: a command would
//     run without some of its characters (layout.place, lost).
//   - It skips a character after a quoted text with a tab (doubleQuoted).
//   - It decodes \xZZ, \uZZZZ and half of a surrogate pair to some character
//     (checkEscapes).
//   - Its offsets and columns are wrong after tabs, comments and block scalars
//     (layout.place sets the offset of each token again).
//
// [newSource] has two more: \r\n, and the end of the file.

const quoteHint = "put the text in quotes, or write it below a line that ends with |"

// tokenize returns the tokens of a source without comments. The Position of each
// token up to the first invalid one has its byte offset in the source. After
// tokenize reports a problem, the tokens are unreliable.
func tokenize(s *source, r *reporter) token.Tokens {
	if !checkBytes(s, r) || !checkSize(s, r) {
		return nil
	}
	l := layout{src: s, r: r}
	return l.place(lexer.Tokenize(s.text))
}

// checkBytes reports the first byte that is not text.
func checkBytes(s *source, r *reporter) bool {
	for i, c := range s.text {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(s.text[i:], string(utf8.RuneError)):
			return r.add(s.spot(i, i+1), fmt.Sprintf("the byte 0x%02x is not UTF-8", s.text[i]), "save the file as UTF-8")
		case c == 0:
			return r.add(s.spot(i, i+1), "a NUL byte: this is not a text file", "save the file as UTF-8 text")
		case unicode.IsControl(c) && c != '\n' && c != '\t' && c != 0x85:
			return r.add(s.spot(i, i+1), fmt.Sprintf("a control character (U+%04X), which YAML does not allow", c), fmt.Sprintf(`remove it, or write it as "\x%02x" in double quotes`, c))
		}
	}
	return true
}

// checkSize reports text that would keep the lexer busy for minutes.
func checkSize(s *source, r *reporter) bool {
	const (
		maxBlank  = 100         // empty lines in a row
		maxArrows = 1000        // < in a row
		maxTabs   = 200_000_000 // sum of the bytes after each tab in its line
	)
	tooMany := strings.Repeat("<", maxArrows+1)
	blank, tabs := 0, 0
	for i, start := range s.starts[:len(s.starts)-1] {
		line := s.line(i + 1)
		if blank++; strings.Trim(line, " \t") != "" {
			blank = 0
		}
		for at := strings.IndexByte(line, '\t'); at >= 0 && at < len(line); at++ {
			if line[at] == '\t' {
				tabs += len(line) - at
			}
		}
		arrows := strings.Index(line, tooMany)
		switch {
		case blank > maxBlank:
			return r.add(s.spot(start, start+1), fmt.Sprintf("more than %d empty lines in a row", maxBlank), "remove some")
		case arrows >= 0:
			return r.add(s.spot(start+arrows, start+arrows+1), fmt.Sprintf("more than %d times < in a row", maxArrows), "keep such data in a file of its own")
		case tabs > maxTabs:
			return r.add(s.spot(start, start+1), "too many tabs in long lines", `write \t in double quotes, or keep such data in a file of its own`)
		}
	}
	return true
}

// layout matches the tokens with the source: it finds the exact place of each
// token and the characters that the lexer lost.
type layout struct {
	src *source
	r   *reporter
	end int // offset in the source after the placed tokens
}

// place sets the offsets up to the first invalid token and reports lost
// characters. It returns the tokens without comments, or nil.
func (l *layout) place(all token.Tokens) token.Tokens {
	tokens := make(token.Tokens, 0, len(all))
	invalid, blockScalar := false, false
	for _, tok := range all {
		if invalid = invalid || tok.Type == token.InvalidType; !invalid && !l.placeOne(tok, blockScalar) {
			return nil
		}
		if tok.Type != token.CommentType {
			tokens = append(tokens, tok)
			blockScalar = tok.Type == token.LiteralType || tok.Type == token.FoldedType
		}
	}
	if l.skipWhite(); !invalid && l.end < len(l.src.text) {
		l.unread(l.end)
	}
	return tokens
}

// placeOne returns false if the tokens after this one are unreliable.
func (l *layout) placeOne(tok *token.Token, blockScalar bool) bool {
	l.skipWhite()
	from := l.end
	tok.Position.Offset = from
	if tok.Type == token.DoubleQuoteType {
		return l.doubleQuoted()
	}
	if !l.cover(tok.Origin) {
		return l.unread(from)
	}
	if !blockScalar && lost(tok) {
		if tab := strings.IndexByte(l.src.text[from:l.end], '\t'); tab >= 0 {
			l.r.add(l.src.spot(from+tab, from+tab+1), "a tab in a text without quotes", quoteHint)
		} else {
			l.unread(from)
		}
	}
	return true
}

func (l *layout) unread(at int) bool {
	return l.r.add(l.src.spot(at, at+1), "this text cannot be read as it is", "put it in quotes")
}

func isWhite(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func (l *layout) skipWhite() {
	for l.end < len(l.src.text) && isWhite(l.src.text[l.end]) {
		l.end++
	}
}

// cover moves end past the characters of a token. It returns false if the source
// has other characters.
func (l *layout) cover(origin string) bool {
	for i := range len(origin) {
		if isWhite(origin[i]) {
			continue
		}
		l.skipWhite()
		if l.end == len(l.src.text) || l.src.text[l.end] != origin[i] {
			return false
		}
		l.end++
	}
	return true
}

var squeeze = strings.NewReplacer(" ", "", "\n", "")

// lost reports whether the value of a plain scalar lacks characters of its origin.
func lost(tok *token.Token) bool {
	return tok.CharacterType == token.CharacterTypeMiscellaneous && tok.Type != token.SingleQuoteType &&
		squeeze.Replace(tok.Value) != squeeze.Replace(strings.Trim(tok.Origin, " \t\n"))
}

// doubleQuoted moves end past a text in double quotes, whose Origin holds decoded
// characters that [layout.cover] cannot match. It returns false if the tokens
// after it are unreliable.
func (l *layout) doubleQuoted() bool {
	from := l.end
	if !strings.HasPrefix(l.src.text[from:], `"`) {
		return l.unread(from)
	}
	l.end += quotedLength(l.src.text[from:])
	return l.checkEscapes(from)
}

var tabOrEscape = regexp.MustCompile(`(?s)\t|\\(?:x[0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}|.)`)

// checkEscapes reports tabs and escapes that the lexer misreads in the quoted text
// from an offset to end. It returns false for a tab.
func (l *layout) checkEscapes(from int) bool {
	half := false // the previous escape is the first half of a surrogate pair
	for _, m := range tabOrEscape.FindAllStringIndex(l.src.text[from:l.end], -1) {
		start, end := from+m[0], from+m[1]
		escape := l.src.text[start:end]
		if escape == "\t" {
			return l.r.add(l.src.spot(start, end), "a tab in double quotes", `write \t, or use single quotes`)
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[escape[1]]
		code, err := strconv.ParseUint(escape[2:], 16, 32)
		low, surrogate := code >= 0xDC00 && code <= 0xDFFF, code >= 0xD800 && code <= 0xDFFF
		switch {
		case digits == 0:
			half = false
			continue
		case err != nil || len(escape) < 2+digits:
			l.r.add(l.src.spot(start, start+2), fmt.Sprintf(`\%c wants %d hexadecimal digits after it`, escape[1], digits), `write \\ for a backslash, or put the text in single quotes`)
		case code > unicode.MaxRune, low && !half, surrogate && digits == 8:
			l.r.add(l.src.spot(start, end), "this is not a character", "write the character itself")
		}
		half = surrogate && !low // the lexer checked that the other half follows
	}
	return true
}
