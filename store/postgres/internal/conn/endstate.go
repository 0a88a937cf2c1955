package conn

import "strings"

// weaver_tasks has a column that SQLite lacks: end_state, the state of a task that ended
// without success, else NULL. It has the index of those tasks, because every claim and every
// finish would write an index on state. Each statement that writes the state must write
// end_state too. The assignment is added here, so that no statement can lack it.

const updateTasks = "UPDATE weaver_tasks "

// withEndStates adds an assignment of end_state to each UPDATE of weaver_tasks in a text that
// assigns the state.
func withEndStates(sql string) string {
	var b strings.Builder
	for {
		at := strings.Index(sql, updateTasks)
		if at < 0 {
			break
		}
		set := strings.Index(sql[at:], "SET")
		if set < 0 {
			break
		}
		at += set + len("SET")
		b.WriteString(sql[:at])
		sql = sql[at:]
		for more := true; more; {
			var n int
			n, more = assignment(sql)
			text := strings.TrimRight(sql[:n], " \t\r\n")
			b.WriteString(text)
			if value, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "state = "); ok {
				b.WriteString(endState(value))
			}
			b.WriteString(sql[len(text):n])
			if more {
				b.WriteByte(',')
				n++
			}
			sql = sql[n:]
		}
	}
	b.WriteString(sql)
	return b.String()
}

// assignment returns the length of the first assignment of sql, and whether a comma and
// another assignment follow.
func assignment(sql string) (n int, more bool) {
	for depth := 0; n < len(sql); {
		if skip := verbatim(sql[n:]); skip > 0 {
			n += skip
			continue
		}
		switch c := sql[n]; {
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return n, false
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			return n, true
		case isWord(c):
			end := n + 1
			for end < len(sql) && isWord(sql[end]) {
				end++
			}
			if word := sql[n:end]; depth == 0 && (word == "FROM" || word == "WHERE" || word == "RETURNING") {
				return n, false
			}
			n = end
			continue
		}
		n++
	}
	return n, false
}

// endState returns the assignment of end_state to append to an assignment of the state.
func endState(state string) string {
	switch state {
	case "'running'", "'succeeded'": // end_state is NULL before: only unfinished tasks get there
		return ""
	case "'ready'", "'pending'":
		return ", end_state = NULL"
	case "'failed'", "'blocked'", "'cancelled'":
		return ", end_state = " + state
	}
	return ", end_state = CASE WHEN " + state + " IN ('failed', 'blocked', 'cancelled') THEN " + state + " END"
}
