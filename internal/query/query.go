// Package query is the language in which lists of tasks are asked for, in one line:
//
//	state:failed,blocked type:acme.billing.* queue:billing waiting:signal error:timeout
//	label.team=pay input.order.id=42 created>-2h key:evt-456 node:sum "no such card"
//
// undo: is open, blocked (open, and for a person), failed (given up) or abandoned.
// All terms must hold; commas are "any of". Texts with spaces, commas or quotes stand in
// double quotes, with \" and \\ in them. A text without a qualifier is looked for, in
// whatever case, in the last error (message, code and step), the task's name in its job
// and its keys.
//
// Paths in values lead through objects by key and through arrays by number
// (input.items.0.id); keys with dots, spaces and the like stand in quotes. Their values
// are compared as JSON text: 42 and 42.0 differ. One without quotes also means the
// JSON string of it, one in quotes means that alone.
package query

import (
	"strings"
	"time"
	"unicode"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// MaxText is how many bytes the text of a query may have.
const MaxText = 2 << 10

// Query is what a text asks for. The zero value asks for every task.
type Query struct{ terms []term }

// term is one condition.
type term struct {
	field  string   // "": words
	op     rune     // : = < >
	path   []string // of label (the key), input and output
	values []value  // any of them
}

// value is what a term compares with.
type value struct {
	text   string
	quoted bool // of input and output: it means the JSON string alone
}

// The fields that terms name.
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

// Words are the qualifiers that there are.
func Words() []string {
	return []string{
		"state:", "type:", "queue:", "waiting:", "error:", "undo:", "label.KEY=", "input.PATH=", "output.PATH=",
		"created>", "created<", "key:", "node:", "parent:", "job:",
	}
}

// Exact reports whether the Filter says all that the query does.
func (q *Query) Exact() bool {
	for i := range q.terms {
		if !q.terms[i].indexed() {
			return false
		}
	}
	return true
}

// Relative reports whether a query's text has a time that is counted from now.
func Relative(text string, now time.Time) bool {
	q, err := Parse(text, now)
	if err != nil {
		return false
	}
	then, err := Parse(text, now.Add(time.Second))
	return err == nil && q.String() != then.String()
}

// indexed reports whether a store.Filter says the same as the term.
func (t *term) indexed() bool {
	switch t.field {
	case fieldState, fieldType, fieldWaiting, fieldError, fieldCreated:
		return true
	case fieldQueue, fieldLabel, fieldParent, fieldJob:
		return len(t.values) == 1
	}
	return false
}

// Filter returns what a store knows of the query.
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

// The states of an undo phase.
const (
	undoOpen      = "open"      // it is not over
	undoBlocked   = "blocked"   // it waits for a person
	undoFailed    = "failed"    // it was given up, and no operator has accepted that
	undoAbandoned = "abandoned" // an operator gave it up, or accepted that it was given up
)

// hintUndo narrows a filter to tasks whose undo phase may be in a state, as far as other
// terms do not.
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

// undo reports whether the undo phase of a task is in a state.
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
		at, _ := time.Parse(time.RFC3339Nano, first) // as the parser wrote it
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

// idOf is an id that the parser has read before.
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

// write writes a text, in quotes if it is empty, or has spaces or special characters.
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
