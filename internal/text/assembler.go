package text

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLine is the maximum length of an [Assembler] line in characters; a longer line is split.
const MaxLine = 4000

// Assembler splits a stream that arrives in arbitrary blocks into printable lines: a block may end inside a line, a
// character or an escape sequence. It drops escape sequences and replaces other control characters. The zero value is
// ready to use.
type Assembler struct {
	Colors bool // keep colour sequences (SGR); a line with colours ends with a reset

	split  [utf8.UTFMax]byte // the first bytes of an incomplete character
	nsplit int
	pos    position
	fresh  bool // the next character starts the line again, as progress bars do
	line   []byte
	chars  int // length of line in characters

	params  []byte // with Colors: parameters of the current control sequence
	colored bool   // line contains a colour sequence
}

// position is the position of a stream relative to escape sequences.
type position uint8

const (
	inText    position = iota
	inEscape           // after ESC
	inCharset          // after ESC and an intermediate character
	inControl          // CSI …
	inString           // OSC, DCS, PM, APC, SOS: until ST
	inEnd              // after an ESC in a string: half an ST
)

// Write processes a block and calls line for every line that it completes.
func (a *Assembler) Write(block string, line func(string)) {
	if a.nsplit > 0 {
		block = string(a.split[:a.nsplit]) + block
		a.nsplit = 0
	}
	for block != "" {
		if n := a.plain(block); n > 0 { // fast path for the common case
			a.line = append(a.line, block[:n]...)
			a.chars += n
			block = block[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(block)
		if r == utf8.RuneError && size == 1 && !utf8.FullRuneInString(block) {
			a.nsplit = copy(a.split[:], block)
			return
		}
		block = block[size:]
		a.rune(r, line)
	}
}

// plain returns the number of leading bytes of a block that can be copied unchanged.
func (a *Assembler) plain(block string) int {
	if a.pos != inText || a.fresh {
		return 0
	}
	n := 0
	for n < len(block) && a.chars+n < MaxLine && block[n] >= ' ' && block[n] < 0x7f {
		n++
	}
	return n
}

// Rest ends the stream and returns its unfinished line, which may be empty.
func (a *Assembler) Rest() string {
	if a.nsplit > 0 && a.pos == inText && a.chars < MaxLine {
		a.add(utf8.RuneError, nil)
	}
	text := a.Seen()
	*a = Assembler{Colors: a.Colors}
	return text
}

// Seen returns the unfinished line so far.
func (a *Assembler) Seen() string { return a.closed(bytes.TrimRight(a.line, " ")) }

// closed returns a line that ends with a colour reset if it has colours.
func (a *Assembler) closed(line []byte) string {
	if a.colored {
		return string(line) + "\x1b[0m"
	}
	return string(line)
}

func (a *Assembler) empty() { a.line, a.chars, a.fresh, a.colored = a.line[:0], 0, false, false }

func (a *Assembler) rune(r rune, line func(string)) {
	if a.pos == inText {
		a.text(r, line)
		return
	}
	// A line break ends every sequence: an unterminated one must not swallow the rest of the output.
	if r == '\n' || r == '\x18' || r == '\x1a' {
		a.pos = inText
		if r == '\n' {
			a.text(r, line)
		}
		return
	}
	switch a.pos {
	case inEscape:
		a.escape(r, line)
	case inCharset:
		if r < 0x20 || r > 0x2f {
			a.pos = inText // this character selects the character set
		}
	case inControl:
		a.control(r, line)
	case inString:
		switch r {
		case '\a', '\u009c':
			a.pos = inText
		case '\x1b':
			a.pos = inEnd
		}
	case inEnd:
		if r == '\\' {
			a.pos = inText
			return
		}
		a.escape(r, line)
	}
}

// escape handles the character after an ESC.
func (a *Assembler) escape(r rune, line func(string)) {
	switch {
	case r == '[':
		a.pos, a.params = inControl, a.params[:0]
	case strings.ContainsRune("]PX^_", r):
		a.pos = inString
	case r >= 0x20 && r <= 0x2f:
		a.pos = inCharset
	case r >= 0x30 && r <= 0x7e:
		a.pos = inText
	case r == '\x1b':
		a.pos = inEscape
	default:
		a.pos = inText
		a.text(r, line)
	}
}

// control handles a character inside a control sequence.
func (a *Assembler) control(r rune, line func(string)) {
	switch {
	case r >= 0x20 && r <= 0x3f: // parameters
		if a.Colors && len(a.params) <= maxParams {
			a.params = append(a.params, byte(r))
		}
	case r >= 0x40 && r <= 0x7e:
		a.pos = inText
		if r == 'G' { // the cursor moves to a column, as spinners do
			a.fresh = true
		}
		if r == 'm' && a.Colors {
			a.color()
		}
	case r == '\x1b':
		a.pos = inEscape
	default:
		a.pos = inText
		a.text(r, line)
	}
}

// maxParams is the maximum length of the parameters of a colour sequence in bytes.
const maxParams = 32

// color keeps the control sequence just read if it sets colours.
func (a *Assembler) color() {
	if len(a.params) > maxParams || len(bytes.TrimLeft(a.params, "0123456789;:")) > 0 {
		return
	}
	if a.fresh {
		a.empty()
	}
	a.line = append(append(append(a.line, "\x1b["...), a.params...), 'm')
	a.colored = true
}

// text handles a character outside escape sequences.
func (a *Assembler) text(r rune, line func(string)) {
	switch r {
	case '\n':
		if line != nil {
			line(a.Seen())
		}
		a.empty()
	case '\r':
		a.fresh = true
	case '\b':
		if a.colored {
			return // the text before it may be part of a sequence
		}
		if _, size := utf8.DecodeLastRune(a.line); size > 0 {
			a.line = a.line[:len(a.line)-size]
			a.chars--
		}
	case '\t':
		a.add(' ', line)
		for a.chars%8 != 0 {
			a.add(' ', line)
		}
	case '\x1b':
		a.pos = inEscape
	case '\u009b':
		a.pos, a.params = inControl, a.params[:0]
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		a.pos = inString
	default:
		a.add(r, line)
	}
}

func (a *Assembler) add(r rune, line func(string)) {
	if a.fresh {
		a.empty()
	}
	if a.chars == MaxLine {
		if line != nil {
			line(a.closed(a.line))
		}
		a.empty()
	}
	a.line = utf8.AppendRune(a.line, shown(r))
	a.chars++
}

// Joiners of emoji and of Indic and Persian script. Other invisible characters are replaced; these do no harm.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// shown returns the printable form of a character. It replaces, among others, characters that change the direction of
// the text that follows.
func shown(r rune) rune {
	if unicode.IsGraphic(r) || r == joiner || r == nonJoiner {
		return r
	}
	return utf8.RuneError
}
