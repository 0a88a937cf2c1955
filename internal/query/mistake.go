package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/typo"
)

// Mistake says why a text is no query.
type Mistake struct {
	Column int      // of the character at which it is, from 1
	What   string   // is wrong
	Meant  string   // what was probably meant; "": unknown
	Words  []string // that could stand there; nil: it is not about a word
}

// Error implements error.
func (m *Mistake) Error() string {
	s := fmt.Sprintf("column %d: %s", m.Column, m.What)
	if m.Meant != "" {
		s += "; did you mean " + m.Meant + "?"
	} else if len(m.Words) > 0 {
		s += ";"
	}
	if len(m.Words) > 0 {
		s += " there are: " + strings.Join(m.Words, ", ")
	}
	return s
}

// maxTypos is how far a word may be from the one that was meant.
const maxTypos = 2

// nearest returns the one of words that another one was probably meant to be.
func nearest(word string, words []string) string {
	best, least := "", maxTypos+1
	for _, w := range words {
		limit := min(maxTypos, max(1, len(w)/3))
		if d := typo.Distance(strings.ToLower(word), w, limit); d <= limit && d < least {
			best, least = w, d
		}
	}
	return best
}

// unknown is the mistake of a word that is none of those there are.
func unknown(column int, what, word string, words []string) *Mistake {
	return &Mistake{Column: column, What: what, Meant: nearest(word, words), Words: slices.Clone(words)}
}
