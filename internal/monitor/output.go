package monitor

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/text"
)

// maxLine is how many characters a line of output has at most; longer ones
// are told in pieces.
const maxLine = 4000

// assembler makes printable lines of a stream that arrives in arbitrary
// blocks: a block may end inside a line, a character or an escape sequence.
// Escape sequences are dropped wholly, other control characters replaced.
// The zero value is ready.
type assembler struct {
	split  [utf8.UTFMax]byte // the first bytes of a character
	nsplit int
	where  position
	fresh  bool // the next character begins the line anew: progress bars rewrite theirs
	line   []byte
	chars  int // of line
}

// position is where in an escape sequence a stream is.
type position uint8

const (
	inText    position = iota
	inEscape           // after ESC
	inCharset          // after ESC and an intermediate character
	inControl          // CSI …
	inString           // OSC, DCS, PM, APC, SOS: until ST
	inEnd              // after an ESC in a string: half an ST
)

// write takes a block and hands out every line that it completes.
func (a *assembler) write(block string, line func(string)) {
	if a.nsplit > 0 {
		block = string(a.split[:a.nsplit]) + block
		a.nsplit = 0
	}
	for block != "" {
		if n := a.plain(block); n > 0 { // the usual case, quickly
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

// plain is how many bytes of a block can be taken over as they are.
func (a *assembler) plain(block string) int {
	if a.where != inText || a.fresh {
		return 0
	}
	n := 0
	for n < len(block) && a.chars+n < maxLine && block[n] >= ' ' && block[n] < 0x7f {
		n++
	}
	return n
}

// rest ends the stream and returns its unfinished line, which may be empty.
func (a *assembler) rest() string {
	if a.nsplit > 0 && a.where == inText && a.chars < maxLine {
		a.add(utf8.RuneError, nil)
	}
	text := a.seen()
	*a = assembler{}
	return text
}

// seen is the unfinished line so far.
func (a *assembler) seen() string { return string(bytes.TrimRight(a.line, " ")) }

func (a *assembler) empty() { a.line, a.chars, a.fresh = a.line[:0], 0, false }

func (a *assembler) rune(r rune, line func(string)) {
	if a.where == inText {
		a.text(r, line)
		return
	}
	// A line break ends every sequence: one that is never closed must not
	// swallow the rest of the output.
	if r == '\n' || r == '\x18' || r == '\x1a' {
		a.where = inText
		if r == '\n' {
			a.text(r, line)
		}
		return
	}
	switch a.where {
	case inEscape:
		a.escape(r, line)
	case inCharset:
		if r < 0x20 || r > 0x2f {
			a.where = inText // the character that is named
		}
	case inControl:
		a.control(r, line)
	case inString:
		switch r {
		case '\a', '\u009c':
			a.where = inText
		case '\x1b':
			a.where = inEnd
		}
	case inEnd:
		if r == '\\' {
			a.where = inText
			return
		}
		a.escape(r, line)
	}
}

// escape takes what follows an ESC.
func (a *assembler) escape(r rune, line func(string)) {
	switch {
	case r == '[':
		a.where = inControl
	case strings.ContainsRune("]PX^_", r):
		a.where = inString
	case r >= 0x20 && r <= 0x2f:
		a.where = inCharset
	case r >= 0x30 && r <= 0x7e:
		a.where = inText
	case r == '\x1b':
		a.where = inEscape
	default:
		a.where = inText
		a.text(r, line)
	}
}

// control takes the inside of a control sequence.
func (a *assembler) control(r rune, line func(string)) {
	switch {
	case r >= 0x20 && r <= 0x3f: // parameters
	case r >= 0x40 && r <= 0x7e:
		a.where = inText
		if r == 'G' { // the cursor goes to a column: what spinners do
			a.fresh = true
		}
	case r == '\x1b':
		a.where = inEscape
	default:
		a.where = inText
		a.text(r, line)
	}
}

// text takes a character outside escape sequences.
func (a *assembler) text(r rune, line func(string)) {
	switch r {
	case '\n':
		if line != nil {
			line(a.seen())
		}
		a.empty()
	case '\r':
		a.fresh = true
	case '\b':
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
		a.where = inEscape
	case '\u009b':
		a.where = inControl
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		a.where = inString
	default:
		a.add(r, line)
	}
}

func (a *assembler) add(r rune, line func(string)) {
	if a.fresh {
		a.empty()
	}
	if a.chars == maxLine {
		if line != nil {
			line(string(a.line))
		}
		a.empty()
	}
	a.line = utf8.AppendRune(a.line, shown(r))
	a.chars++
}

// The joiners of emoji and of Indic and Persian script: of the characters
// that are not seen, these do no harm.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// shown is what stands for a character. Among those that are replaced are the
// ones that change the direction of what follows.
func shown(r rune) rune {
	if unicode.IsGraphic(r) || r == joiner || r == nonJoiner {
		return r
	}
	return utf8.RuneError
}

// printableLines makes a recorded text printable, line by line.
func printableLines(text string) []string {
	var a assembler
	var lines []string
	keep := func(line string) { lines = append(lines, line) }
	a.write(text, keep)
	if last := a.rest(); last != "" {
		keep(last)
	}
	return lines
}

// oneLine makes a recorded text a printable line of at most limit columns.
func oneLine(recorded string, limit int) string {
	joined := strings.Join(printableLines(recorded), " ")
	return text.Cut(strings.Join(strings.Fields(joined), " "), limit)
}

// firstLine is the first line of a recorded text that says something.
func firstLine(recorded string, limit int) string {
	for _, line := range printableLines(recorded) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return text.Cut(line, limit)
		}
	}
	return ""
}
