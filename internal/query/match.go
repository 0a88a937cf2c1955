package query

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/task"
)

// Row reports whether a task can match the terms that the query's Filter does not cover, as far as its row tells
// without its values; see NeedsValues.
func (q *Query) Row(t *task.Task) bool {
	for i := range q.terms {
		c := &q.terms[i]
		if !c.indexed() && !c.row(t) {
			return false
		}
	}
	return true
}

// row is Row for one term.
func (c *term) row(t *task.Task) bool {
	switch c.field {
	case fieldQueue:
		return c.has(t.Queue)
	case fieldNode:
		return t.Node != "" && c.has(t.Node)
	case fieldKey:
		return t.IdempotencyKey != "" && c.has(t.IdempotencyKey) || t.ConcurrencyKey != "" && c.has(t.ConcurrencyKey)
	case fieldParent:
		return c.has(t.ParentID.String())
	case fieldJob:
		return c.has(t.JobID.String())
	case fieldUndo:
		if t.Waiting == task.WaitDeps { // the undo of a task whose job has not ended yet
			return false
		}
		return c.undo(t.Undo, t.State)
	case fieldLabel:
		label, found := t.Labels[c.path[0]]
		return found && c.has(label)
	case "":
		return c.stands(t)
	}
	return true // decided by Values: input and output
}

func (c *term) has(text string) bool {
	return slices.ContainsFunc(c.values, func(v value) bool { return v.text == text })
}

// stands reports whether one of the term's words occurs in the searched texts of a task.
func (c *term) stands(t *task.Task) bool {
	texts := []string{t.Node, t.IdempotencyKey, t.ConcurrencyKey}
	if e := t.Error; e != nil {
		texts = append(texts, e.Message, e.Code, e.Step)
	}
	word := folded(c.values[0].text)
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(folded(s), word) })
}

// folded normalizes a text for comparing words: lower case, with single spaces for spaces and line breaks.
func folded(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// NeedsValues reports which values of a task Values needs. Values also masks the texts of errors with the secrets in
// them.
func (q *Query) NeedsValues(t *task.Task) (input, output bool) {
	for i := range q.terms {
		switch q.terms[i].field {
		case fieldInput:
			input = true
		case fieldOutput:
			output = true
		case "":
			if t.Error != nil && len(t.Redact) > 0 {
				input, output = true, true
			}
		}
	}
	return input, output
}

// AsksForValues reports whether a term refers to inputs or outputs.
func (q *Query) AsksForValues() bool {
	return slices.ContainsFunc(q.terms, func(t term) bool { return t.field == fieldInput || t.field == fieldOutput })
}

// Values reports whether a task that passed Row matches. shown is the same task as readers see it: hidden values
// never match.
func (q *Query) Values(t, shown *task.Task) bool {
	for i := range q.terms {
		c := &q.terms[i]
		switch c.field {
		case fieldInput:
			if !c.within(t.Input) || !c.within(shown.Input) {
				return false
			}
		case fieldOutput:
			if !c.within(t.Output) || !c.within(shown.Output) {
				return false
			}
		case "":
			if !c.stands(shown) {
				return false
			}
		}
	}
	return true
}

// within reports whether the value under the term's path equals one of the term's values.
func (c *term) within(whole json.RawMessage) bool {
	found, ok := follow(whole, c.path)
	return ok && slices.ContainsFunc(c.values, func(v value) bool { return v.equals(found) })
}

// follow returns the part of a value under a path.
func follow(v json.RawMessage, path []string) (json.RawMessage, bool) {
	for _, segment := range path {
		switch v = bytes.TrimLeft(v, " \t\r\n"); {
		case len(v) == 0:
			return nil, false
		case v[0] == '{':
			var object map[string]json.RawMessage
			if json.Unmarshal(v, &object) != nil {
				return nil, false
			}
			var found bool
			if v, found = object[segment]; !found {
				return nil, false
			}
		case v[0] == '[':
			n, err := strconv.Atoi(segment)
			if err != nil || strconv.Itoa(n) != segment {
				return nil, false
			}
			var list []json.RawMessage
			if json.Unmarshal(v, &list) != nil || n < 0 || n >= len(list) {
				return nil, false
			}
			v = list[n]
		default:
			return nil, false
		}
	}
	return v, true
}

// equals reports whether a JSON value equals v.
func (v *value) equals(found json.RawMessage) bool {
	found = bytes.TrimSpace(found)
	if len(found) > 0 && found[0] == '"' {
		var text string
		return json.Unmarshal(found, &text) == nil && text == v.text
	}
	if len(found) > MaxText || v.quoted {
		return false
	}
	var compact bytes.Buffer // of [ ] and similar
	return json.Compact(&compact, found) == nil && compact.String() == v.text
}
