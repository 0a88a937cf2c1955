package text

import "strings"

// Lines makes a recorded text printable, line by line, as [Assembler] does.
func Lines(recorded string) []string {
	var a Assembler
	var lines []string
	keep := func(line string) { lines = append(lines, line) }
	a.Write(recorded, keep)
	if last := a.Rest(); last != "" {
		keep(last)
	}
	return lines
}

// OneLine makes a recorded text one printable line of at most limit columns,
// without escape sequences and with single spaces.
func OneLine(recorded string, limit int) string {
	joined := strings.Join(Lines(recorded), " ")
	return Cut(strings.Join(strings.Fields(joined), " "), limit)
}

// FirstLine returns the first line of a recorded text that is not blank, as
// [OneLine] does; "" when there is none.
func FirstLine(recorded string, limit int) string {
	for _, line := range Lines(recorded) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return Cut(line, limit)
		}
	}
	return ""
}
