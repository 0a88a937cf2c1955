package text

import "strings"

// Lines splits a recorded text into printable lines, like an [Assembler].
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

// OneLine returns a recorded text as one printable line of at most limit columns, without escape sequences and with
// single spaces.
func OneLine(recorded string, limit int) string {
	joined := strings.Join(Lines(recorded), " ")
	return Cut(strings.Join(strings.Fields(joined), " "), limit)
}

// FirstLine returns the first line of a recorded text that is not blank, formatted like [OneLine]. It returns "" if
// every line is blank.
func FirstLine(recorded string, limit int) string {
	for _, line := range Lines(recorded) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return Cut(line, limit)
		}
	}
	return ""
}
