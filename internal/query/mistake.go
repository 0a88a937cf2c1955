package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/typo"
)

// Mistake describes a syntax error in a query.
type Mistake struct {
	Column int      // of the character in error, from 1
	What   string   // the error
	Meant  string   // the suggested word; "" if unknown
	Words  []string // words allowed there; nil if the error is not about a word
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

// maxTypos is the maximum distance between a word and its suggestion.
const maxTypos = 2

// nearest returns the element of words that word was probably meant to be.
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

// unknown returns the Mistake for a word that is not in words.
func unknown(column int, what, word string, words []string) *Mistake {
	return &Mistake{Column: column, What: what, Meant: nearest(word, words), Words: slices.Clone(words)}
}
