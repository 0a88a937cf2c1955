// Package query parses the one-line language that selects tasks:
//
//	state:failed,blocked type:acme.billing.* queue:billing waiting:signal error:timeout
//	label.team=pay input.order.id=42 created>-2h key:evt-456 node:sum "no such card"
//
// The states of undo: are open, blocked (open and waiting for a person), failed and abandoned (by an operator). A
// task must match all terms; commas separate alternatives. Texts with spaces, commas or quotes stand in double
// quotes, with \" and \\ inside. A text without a qualifier is searched, ignoring case, in the last error (message,
// code and step), the task's name in its job, and its keys.
//
// Paths in values lead through objects by key and through arrays by number (input.items.0.id); keys with dots, spaces
// and similar characters stand in quotes. Values are compared as JSON text: 42 and 42.0 differ. An unquoted value
// also matches the JSON string with the same text; a quoted value matches only that string.
package query

import (
	"strings"
	"time"
	"unicode"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// MaxText is the maximum length of a query in bytes.
const MaxText = 2 << 10

// Query is a parsed query. The zero value matches every task.
type Query struct{ terms []term }

// term is one condition.
type term struct {
	field  string   // "" for words
	op     rune     // one of : = < >
	path   []string // the key of a label; the path into input or output
	values []value  // alternatives
}

// value is an operand of a term.
type value struct {
	text   string
	quoted bool // for input and output: only the JSON string matches
}

// Fields that terms can name.
const (
	fieldState   = "state"
	fieldType    = "type"
	fieldQueue   = "queue"
	fieldWaiting = "waiting"
	fieldError   = "error"
	fieldUndo    = "undo"
	fieldLabel   = "label"
	fieldInput   = "input"
	fieldOutput  = "output"
	fieldCreated = "created"
	fieldKey     = "key"
	fieldNode    = "node"
	fieldParent  = "parent"
	fieldJob     = "job"
)

// Words returns all qualifiers.
func Words() []string {
	return []string{
		"state:", "type:", "queue:", "waiting:", "error:", "undo:", "label.KEY=", "input.PATH=", "output.PATH=",
		"created>", "created<", "key:", "node:", "parent:", "job:",
	}
}

// Exact reports whether the Filter covers the whole query.
func (q *Query) Exact() bool {
	for i := range q.terms {
		if !q.terms[i].indexed() {
			return false
		}
	}
	return true
}

// Relative reports whether a query contains a time relative to now.
func Relative(text string, now time.Time) bool {
	q, err := Parse(text, now)
	if err != nil {
		return false
	}
	then, err := Parse(text, now.Add(time.Second))
	return err == nil && q.String() != then.String()
}

// indexed reports whether a store.Filter expresses the term exactly.
func (t *term) indexed() bool {
	switch t.field {
	case fieldState, fieldType, fieldWaiting, fieldError, fieldCreated:
		return true
	case fieldQueue, fieldLabel, fieldParent, fieldJob:
		return len(t.values) == 1
	}
	return false
}

// Filter returns the part of the query that a store can evaluate.
func (q *Query) Filter() (f store.Filter) {
	for i := range q.terms {
		if q.terms[i].indexed() {
			q.terms[i].narrow(&f)
		}
	}
	for i := range q.terms {
		if t := &q.terms[i]; t.field == fieldUndo && len(t.values) == 1 {
			hintUndo(&f, t.values[0].text)
		}
	}
	return f
}

// States of an undo phase.
const (
	undoOpen      = "open"      // not finished
	undoBlocked   = "blocked"   // waits for a person
	undoFailed    = "failed"    // failed, and no operator has accepted that
	undoAbandoned = "abandoned" // abandoned by an operator, or failed and accepted
)

// hintUndo narrows a filter to tasks whose undo phase may be in a state, unless other terms already narrow it.
func hintUndo(f *store.Filter, state string) {
	states := map[string][]task.State{
		undoOpen: {task.Pending, task.Running, task.Blocked}, undoBlocked: {task.Blocked}, undoFailed: {task.Failed}, undoAbandoned: {task.Failed},
	}
	if len(f.States) == 0 {
		f.States = states[state]
	}
	if len(f.ErrorKinds) == 0 && (state == undoFailed || state == undoAbandoned) {
		f.ErrorKinds = []task.ErrorKind{task.KindUndoFailed}
	}
}

// undo reports whether the undo phase of a task is in one of the term's states.
func (t *term) undo(p *task.UndoPhase, s task.State) bool {
	switch {
	case p == nil:
		return false
	case p.Stands():
		return t.has(undoFailed)
	case p.GaveUp:
		return t.has(undoAbandoned)
	}
	return t.has(undoOpen) || s == task.Blocked && t.has(undoBlocked)
}

func (t *term) narrow(f *store.Filter) {
	first := t.values[0].text
	switch t.field {
	case fieldState:
		f.States = listOf[task.State](t)
	case fieldType:
		f.Types = listOf[string](t)
	case fieldWaiting:
		f.Waiting = listOf[task.Waiting](t)
	case fieldError:
		f.ErrorKinds = listOf[task.ErrorKind](t)
	case fieldQueue:
		f.Queue = first
	case fieldParent:
		f.Parent = idOf(first)
	case fieldJob:
		f.Job = idOf(first)
	case fieldLabel:
		if f.Labels == nil {
			f.Labels = make(map[string]string)
		}
		f.Labels[t.path[0]] = first
	case fieldCreated:
		at, _ := time.Parse(time.RFC3339Nano, first) // the parser wrote this format
		if t.op == '>' {
			f.CreatedAfter = at
		} else {
			f.CreatedBefore = at
		}
	}
}

func listOf[T ~string](t *term) []T {
	list := make([]T, len(t.values))
	for i, v := range t.values {
		list[i] = T(v.text)
	}
	return list
}

// idOf converts an ID that the parser has checked.
func idOf(text string) task.ID {
	id, _ := task.ParseID(text)
	return id
}

// String returns a text that parses to an equal query.
func (q Query) String() string {
	var b strings.Builder
	for i := range q.terms {
		t := &q.terms[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		if t.field == "" {
			write(&b, t.values[0].text, ":=<>\"")
			continue
		}
		b.WriteString(t.field)
		for _, segment := range t.path {
			b.WriteByte('.')
			write(&b, segment, ".:=<>\"")
		}
		b.WriteRune(t.op)
		for j, v := range t.values {
			if j > 0 {
				b.WriteByte(',')
			}
			if v.quoted {
				quote(&b, v.text)
			} else {
				write(&b, v.text, ",\"")
			}
		}
	}
	return b.String()
}

// write appends a text, quoted if it is empty or contains spaces or special characters.
func write(b *strings.Builder, text, special string) {
	if text != "" && !strings.ContainsAny(text, special) && !strings.ContainsFunc(text, unicode.IsSpace) {
		b.WriteString(text)
		return
	}
	quote(b, text)
}

func quote(b *strings.Builder, text string) {
	b.WriteByte('"')
	b.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text))
	b.WriteByte('"')
}
