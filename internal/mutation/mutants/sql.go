package main

import (
	"regexp"
	"strings"
)

// variant is a mutated text, a description, and the changed line.
type variant struct {
	text, what string
	line       int
}

var (
	sqlWord  = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE|WHERE|AND)\b`)
	sqlToken = regexp.MustCompile(`'[^']*'|[A-Za-z_?][A-Za-z0-9_?.]*|[0-9]+|<=|>=|<>|!=|\|\||->>?|[^\s]`)
	sqlName  = regexp.MustCompile(`^[a-z_]+$`)
)

// The words that begin a condition, and those that end it at its level of
// parentheses.
var (
	sqlBegins = words("WHERE AND ON WHEN HAVING OR")
	sqlEnds   = words("WHERE AND OR GROUP ORDER LIMIT RETURNING UNION THEN HAVING SET EXCEPT DO FROM JOIN LEFT SELECT ON ;")
	sqlBounds = map[string]string{"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
)

func words(list string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// sqlVariants returns the mutants of a string literal with SQL. `OR 1=1` disables
// a condition, and a CASE disables an assignment, so that every parameter stays
// bound. It skips a condition or assignment that is not entirely in the literal.
func sqlVariants(text string) []variant {
	if !sqlWord.MatchString(text) {
		return nil
	}
	var list []variant
	replace := func(from, to int, by, what string) {
		list = append(list, variant{text[:from] + by + text[to:], what, strings.Count(text[:from], "\n")})
	}
	spans := sqlToken.FindAllStringIndex(text, -1)
	tokens := make([]string, len(spans))
	for i, s := range spans {
		tokens[i] = text[s[0]:s[1]]
	}
	for i, token := range tokens {
		next, after := at(tokens, i+1), at(tokens, i+2)
		switch {
		case sqlBegins[token] && next != "CONFLICT" && !between(tokens, i):
			if end, ok := sqlSpan(tokens, i+1, false); ok {
				from, to := spans[i+1][0], spans[end-1][1]
				replace(from, to, "("+text[from:to]+" OR 1=1)", "SQL condition always true: "+short(text[from:to]))
			}
		case sqlBounds[token] != "":
			replace(spans[i][0], spans[i][1], sqlBounds[token], "SQL "+short(at(tokens, i-1)+" "+token+" "+next)+": "+token+" becomes "+sqlBounds[token])
		case (token == "+" || token == "-") && next == "1":
			replace(spans[i+1][0], spans[i+1][1], "0", "SQL "+at(tokens, i-1)+" "+token+" 1: 1 becomes 0")
		}
		if (token == "SET" || token == ",") && sqlName.MatchString(next) && after == "=" && inSet(tokens, i) {
			if end, ok := sqlSpan(tokens, i+3, true); ok {
				from, to := spans[i+3][0], spans[end-1][1]
				replace(from, to, "CASE WHEN 1=1 THEN "+next+" ELSE ("+text[from:to]+") END", "SQL column not written: "+next+" = "+short(text[from:to]))
			}
		}
	}
	return list
}

// at returns a token, or "" outside the text.
func at(tokens []string, i int) string {
	if i < 0 || i >= len(tokens) {
		return ""
	}
	return tokens[i]
}

// sqlSpan returns the end of the expression that begins at a token, and whether
// the expression is complete. A comma ends an expression of SET.
func sqlSpan(tokens []string, begin int, assigned bool) (end int, ok bool) {
	depth, cases := 0, 0
	for end = begin; end < len(tokens); end++ {
		token := tokens[end]
		if depth == 0 && cases == 0 && (sqlEnds[token] && !between(tokens, end) || token == ")" || assigned && token == ",") {
			break
		}
		switch token {
		case "(":
			depth++
		case ")":
			depth--
		case "CASE":
			cases++
		case "END":
			cases--
		}
	}
	return end, end > begin && depth == 0 && cases == 0 && !strings.Contains("=<>=!=(,IN NOT + -", at(tokens, end-1))
}

// between reports whether an AND is part of a BETWEEN.
func between(tokens []string, i int) bool {
	return tokens[i] == "AND" && (at(tokens, i-2) == "BETWEEN" || at(tokens, i-3) == "BETWEEN")
}

// inSet reports whether a comma or SET is part of a SET clause.
func inSet(tokens []string, i int) bool {
	depth := 0
	for ; i >= 0; i-- {
		switch token := tokens[i]; {
		case token == ")":
			depth++
		case token == "(":
			depth--
		case depth == 0 && token == "SET":
			return true
		case depth == 0 && sqlEnds[token] || depth < 0:
			return false
		}
	}
	return false
}

// short returns a text on one line of a report.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 70 {
		return string(r[:69]) + "…"
	}
	return text
}
