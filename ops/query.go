package ops

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/query"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ErrInvalidQuery: the text is no query; QueryError says where and why.
var ErrInvalidQuery = errors.New("invalid query")

// Query asks for tasks: by a Filter, and by what no index knows, which ParseQuery reads
// from a text. The zero value asks for all. Filter has its page, too: Limit and After.
type Query struct {
	Filter store.Filter

	rest *query.Query   // what the Filter does not say; nil: nothing
	also []store.Filter // that hold, too
	none bool           // no task can match

	relative bool // a time is counted from now
}

// QueryError says why a text is no query. It wraps ErrInvalidQuery.
type QueryError struct {
	Column int      // of the character at which the mistake is, from 1
	What   string   // is wrong
	Meant  string   // what was probably meant; "": unknown
	Words  []string // that could stand there; nil: it is not about a word
}

// Error implements error.
func (e *QueryError) Error() string {
	return ErrInvalidQuery.Error() + ": " + (*query.Mistake)(e).Error()
}

// Unwrap implements what errors.Is looks for.
func (e *QueryError) Unwrap() error { return ErrInvalidQuery }

// ParseQuery reads a query of at most 2 KiB:
//
//	state:failed,blocked type:acme.billing.* queue:billing waiting:signal error:timeout
//	label.team=pay input.order.id=42 output.x="a b" created>-2h created<2026-01-02T03:04:05Z
//	key:evt-456 node:sum parent:ID job:ID "no such card"
//
// All terms must hold; commas are "any of". Texts with spaces, commas or quotes stand in
// double quotes, with \" and \\ in them. created> is then or later, created< earlier; a
// time ago is counted from now. A key is the idempotency key or the concurrency key. A text
// without a qualifier is looked for, in whatever case, in the last error (message, code
// and step), the name in the job, and the keys.
//
// Paths in inputs and outputs lead through objects by key and through arrays by number
// (input.items.0.id); keys with dots or spaces stand in quotes. Values are compared as
// JSON text: 42 and 42.0 differ. One without quotes also means the JSON string of it, one
// in quotes that alone. What is redacted never matches.
//
// Errors: *QueryError, which is ErrInvalidQuery.
func ParseQuery(text string, now time.Time) (Query, error) {
	parsed, err := query.Parse(text, now)
	if err != nil {
		var m *query.Mistake
		if errors.As(err, &m) {
			return Query{}, (*QueryError)(m)
		}
		return Query{}, err
	}
	q := Query{Filter: parsed.Filter(), relative: query.Relative(text, now)}
	if !parsed.Exact() {
		q.rest = &parsed
	}
	return q, nil
}

// Exact reports whether the Filter says all that the query does, so that Search is one
// List.
func (q Query) Exact() bool { return q.rest == nil && len(q.also) == 0 && !q.none }

// AsksForValues reports whether the query asks for what inputs or outputs have: who may not
// read them could find them out by what matches.
func (q Query) AsksForValues() bool { return q.rest != nil && q.rest.AsksForValues() }

// Relative reports whether the text of the query had a time ago (created>-2h): read again
// later, it asks for other tasks.
func (q Query) Relative() bool { return q.relative }

// And returns a query for those of q's tasks that a filter selects, too. Limit and After
// are the filter's, unless it has none.
func (q Query) And(f store.Filter) Query {
	g := &q.Filter
	if len(g.Types) == 0 {
		g.Types = f.Types
	} else if len(f.Types) > 0 { // patterns
		q.also = append(slices.Clip(q.also), store.Filter{Types: f.Types})
	}
	ok := []bool{
		both(&g.States, f.States), both(&g.Waiting, f.Waiting), both(&g.ErrorKinds, f.ErrorKinds),
		same(&g.Queue, f.Queue), same(&g.Job, f.Job), same(&g.Parent, f.Parent),
	}
	if len(f.Labels) > 0 {
		g.Labels = maps.Clone(g.Labels)
		for k, v := range f.Labels {
			if has, found := g.Labels[k]; found && has != v {
				ok = append(ok, false)
			}
			if g.Labels == nil {
				g.Labels = make(map[string]string)
			}
			g.Labels[k] = v
		}
	}
	if f.CreatedAfter.After(g.CreatedAfter) {
		g.CreatedAfter = f.CreatedAfter
	}
	if b := f.CreatedBefore; !b.IsZero() && (g.CreatedBefore.IsZero() || b.Before(g.CreatedBefore)) {
		g.CreatedBefore = b
	}
	if f.Limit != 0 {
		g.Limit = f.Limit
	}
	if f.After != "" {
		g.After = f.After
	}
	q.none = q.none || slices.Contains(ok, false)
	return q
}

// MatchesNone reports whether no task can match.
func (q *Query) MatchesNone() bool { return q.none }

// MatchesRow reports whether a task that the Filter selects may match, without a look at its
// input and output.
func (q *Query) MatchesRow(t *task.Task) bool {
	for i := range q.also {
		if !q.also[i].Selects(t) {
			return false
		}
	}
	return q.rest == nil || q.rest.Row(t)
}

// NeedsValues reports whether the input and the output of a task decide whether it matches.
func (q *Query) NeedsValues(t *task.Task) (input, output bool) {
	if q.rest == nil {
		return false, false
	}
	return q.rest.NeedsValues(t)
}

// MatchesValues reports whether a task matches whose row does, by its input and output as
// they were stored; what is redacted in them never matches.
func (q *Query) MatchesValues(t *task.Task) bool {
	if q.rest == nil {
		return true
	}
	shown := *t
	redact.Task(&shown)
	return q.rest.Values(t, &shown)
}

// both keeps what is in both lists, of which an empty one has everything; false: nothing.
func both[T comparable](a *[]T, b []T) bool {
	switch {
	case len(b) == 0:
		return true
	case len(*a) == 0:
		*a = b
		return true
	}
	var left []T
	for _, v := range *a {
		if slices.Contains(b, v) {
			left = append(left, v)
		}
	}
	*a = left
	return len(left) > 0
}

// same keeps what both ask for, of which zero asks for everything; false: they differ.
func same[T comparable](a *T, b T) bool {
	var all T
	if *a == all {
		*a = b
	}
	return b == all || *a == b
}
