package text

import (
	"strings"
	"unicode/utf8"
)

// Cleaner removes terminal control sequences from a stream and keeps the rest unchanged: lines of any length, tabs
// and line breaks. It recognizes the same sequences as an [Assembler]. A lone carriage return, which would overwrite
// the line, starts a new line. The zero value is ready to use.
type Cleaner struct {
	Colors bool // keep colour sequences (SGR)

	a       Assembler // tracks the position in a sequence
	split   []byte    // the first bytes of an incomplete character
	cr      bool      // the last character was a carriage return
	colored bool
}

// Clean returns the cleaned text of a block.
func (c *Cleaner) Clean(block string) string {
	if len(c.split) > 0 {
		block = string(c.split) + block
		c.split = c.split[:0]
	}
	c.a.Colors = c.Colors
	var out strings.Builder
	out.Grow(len(block))
	for block != "" {
		r, size := utf8.DecodeRuneInString(block)
		if r == utf8.RuneError && size == 1 && !utf8.FullRuneInString(block) {
			c.split = append(c.split, block...)
			break
		}
		block = block[size:]
		c.rune(&out, r)
	}
	return out.String()
}

func (c *Cleaner) rune(out *strings.Builder, r rune) {
	if c.cr {
		c.cr = false
		out.WriteByte('\n')
		if r == '\n' {
			return
		}
	}
	if c.a.pos == inText {
		switch r {
		case '\n', '\t':
			out.WriteRune(r)
			return
		case '\r':
			c.cr = true
			return
		}
	}
	c.a.rune(r, func(string) { out.WriteByte('\n') }) // a line break that ends a sequence
	if len(c.a.line) > 0 {
		out.Write(c.a.line)
		c.colored = c.colored || c.a.colored
	}
	if c.a.fresh { // the cursor moved to a column, or a carriage return followed a sequence
		c.cr = true
	}
	c.a.empty()
}

// End ends the stream and returns the text still due.
func (c *Cleaner) End() string {
	var end string
	if len(c.split) > 0 && c.a.pos == inText {
		end = string(utf8.RuneError)
	}
	if c.cr {
		end = "\n" + end
	}
	if c.colored {
		end += "\x1b[0m"
	}
	*c = Cleaner{Colors: c.Colors}
	return end
}
