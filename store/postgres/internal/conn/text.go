package conn

import (
	"strings"
	"sync"
)

var translated sync.Map // a text for SQLite → the text for PostgreSQL

// Translate returns a statement written for SQLite in PostgreSQL's syntax:
//
//   - ?1 becomes $1
//
//   - INDEXED BY name and NOT INDEXED are left out
//
//   - CROSS JOIN becomes JOIN
//
//   - the comment /*lock*/ becomes FOR UPDATE, /*lock o*/ becomes FOR UPDATE OF o, and
//     /*claim o*/ becomes FOR UPDATE OF o SKIP LOCKED
//
//   - /*end_*/state becomes end_state, a column that has an index here, and an UPDATE of
//     weaver_tasks that assigns the state assigns end_state too
//
//   - IN (/*ids*/?2) becomes = ANY(CAST($2 AS bytea[])): the parameter is a list of IDs
//
// Quoted texts and other comments stay unchanged.
func Translate(sql string) string {
	if t, ok := translated.Load(sql); ok {
		return t.(string)
	}
	t := withEndStates(translate(sql))
	translated.Store(sql, t)
	return t
}

func translate(sql string) string {
	var b strings.Builder
	b.Grow(len(sql))
	for i := 0; i < len(sql); {
		if n := verbatim(sql[i:]); n > 0 {
			b.WriteString(lockClause(sql[i : i+n]))
			i += n
			continue
		}
		switch c := sql[i]; {
		case c == '?' && i+1 < len(sql) && isDigit(sql[i+1]):
			b.WriteByte('$')
			i++
		case isWord(c):
			n := 1
			for i+n < len(sql) && isWord(sql[i+n]) {
				n++
			}
			text, used := word(sql[i:], n)
			b.WriteString(text)
			i += used
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// idsMark follows the word IN before a list of IDs.
const idsMark = " (/*ids*/?"

// word returns the replacement of the word of n bytes at the start of sql, and the number of
// bytes that it replaces.
func word(sql string, n int) (text string, used int) {
	switch sql[:n] {
	case "INDEXED":
		if by, ok := follows(sql[n:], "BY"); ok {
			rest := n + by
			for rest < len(sql) && isSpace(sql[rest]) {
				rest++
			}
			for rest < len(sql) && isWord(sql[rest]) {
				rest++
			}
			return "", rest
		}
	case "NOT":
		if more, ok := follows(sql[n:], "INDEXED"); ok {
			return "", n + more
		}
	case "IN":
		if id, rest, ok := strings.Cut(sql[n:], ")"); ok && strings.HasPrefix(id, idsMark) {
			return "= ANY(CAST($" + id[len(idsMark):] + " AS bytea[]))", len(sql) - len(rest)
		}
	case "CROSS":
		if more, ok := follows(sql[n:], "JOIN"); ok {
			return "JOIN", n + more
		}
	}
	return sql[:n], n
}

// follows reports whether the next word of sql is w, and returns its end.
func follows(sql, w string) (end int, ok bool) {
	i := 0
	for i < len(sql) && isSpace(sql[i]) {
		i++
	}
	if i == 0 || !strings.HasPrefix(sql[i:], w) {
		return 0, false
	}
	end = i + len(w)
	return end, end == len(sql) || !isWord(sql[end])
}

// verbatim returns the length of the quoted text or comment at the start of sql, or 0.
func verbatim(sql string) int {
	end := func(after int, mark string) int {
		if at := strings.Index(sql[after:], mark); at >= 0 {
			return after + at + len(mark)
		}
		return len(sql)
	}
	switch {
	case sql[0] == '\'' || sql[0] == '"': // a doubled quote is two consecutive texts
		return end(1, sql[:1])
	case strings.HasPrefix(sql, "--"):
		return end(2, "\n")
	case strings.HasPrefix(sql, "/*"):
		return end(2, "*/")
	}
	return 0
}

// lockClause returns the clause for a comment. It returns other comments unchanged.
func lockClause(text string) string {
	if text == "/*end_*/" {
		return "end_"
	}
	if of, ok := strings.CutPrefix(text, "/*claim "); ok {
		if table, closed := strings.CutSuffix(of, "*/"); closed {
			return "FOR UPDATE OF " + table + " SKIP LOCKED"
		}
	}
	inner, ok := strings.CutPrefix(text, "/*lock")
	inner, closed := strings.CutSuffix(inner, "*/")
	if !ok || !closed {
		return text
	}
	switch table := strings.TrimSpace(inner); {
	case inner == "":
		return "FOR UPDATE"
	case inner[0] == ' ' && table != "":
		return "FOR UPDATE OF " + table
	}
	return text
}

// ParamCount returns the number of parameters of a translated text.
func ParamCount(text string) (n int) {
	for i := 0; i < len(text); {
		if skip := verbatim(text[i:]); skip > 0 {
			i += skip
			continue
		}
		if i++; text[i-1] != '$' {
			continue
		}
		no := 0
		for ; i < len(text) && isDigit(text[i]); i++ {
			no = no*10 + int(text[i]-'0')
		}
		n = max(n, no)
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isWord(c byte) bool {
	return c == '_' || c >= 0x80 || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
