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

// ErrInvalidQuery: the text is not a query; QueryError holds the position and the reason.
var ErrInvalidQuery = errors.New("invalid query")

// Query selects tasks by a Filter and by conditions without an index, which ParseQuery parses from a
// text. The zero value selects all tasks. Filter also holds the page: Limit and After.
type Query struct {
	Filter store.Filter

	rest *query.Query   // conditions beyond the Filter; may be nil
	also []store.Filter // further filters that must match
	none bool           // no task can match

	relative bool // a time is relative to now
}

// QueryError describes an invalid query. It wraps ErrInvalidQuery.
type QueryError struct {
	Column int      // character position of the mistake, from 1
	What   string   // the mistake
	Meant  string   // probable intention; "" if unknown
	Words  []string // words allowed at the position; nil if a word is not the problem
}

// Error implements error.
func (e *QueryError) Error() string {
	return ErrInvalidQuery.Error() + ": " + (*query.Mistake)(e).Error()
}

// Unwrap returns ErrInvalidQuery.
func (e *QueryError) Unwrap() error { return ErrInvalidQuery }

// ParseQuery reads a query of at most 2 KiB:
//
//	state:failed,blocked type:acme.billing.* queue:billing waiting:signal error:timeout
//	label.team=pay input.order.id=42 output.x="a b" created>-2h created<2026-01-02T03:04:05Z
//	key:evt-456 node:sum parent:ID job:ID "no such card"
//
// All terms must match; a comma means "any of". Write texts with spaces, commas or quotes in double
// quotes, escaping \" and \\. created> is inclusive, created< exclusive; a time ago is relative to
// now. A key is the idempotency key or the concurrency key. A text without a qualifier is searched,
// ignoring case, in the last error (message, code and step), the name in the job, and the keys.
//
// Paths in inputs and outputs select object keys and array indexes (input.items.0.id); quote keys with
// dots or spaces. Values are compared as JSON text: 42 and 42.0 differ. An unquoted value also matches
// the JSON string; a quoted one matches only the string. Redacted values never match.
//
// Error: *QueryError, which is ErrInvalidQuery.
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

// Exact reports whether the Filter expresses the whole query, so that Search is a single List.
func (q Query) Exact() bool { return q.rest == nil && len(q.also) == 0 && !q.none }

// AsksForValues reports whether the query depends on inputs or outputs. A caller who may not read them
// could infer them from the matches.
func (q Query) AsksForValues() bool { return q.rest != nil && q.rest.AsksForValues() }

// Relative reports whether the query text has a time ago (created>-2h). Parsed again later, it selects
// other tasks.
func (q Query) Relative() bool { return q.relative }

// And returns a query for the tasks that both q and a filter select. Limit and After come from the
// filter if set.
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

// MatchesRow reports whether a task that the Filter selects may match, judged without its input and
// output.
func (q *Query) MatchesRow(t *task.Task) bool {
	for i := range q.also {
		if !q.also[i].Selects(t) {
			return false
		}
	}
	return q.rest == nil || q.rest.Row(t)
}

// NeedsValues reports whether a match depends on the task's input and output.
func (q *Query) NeedsValues(t *task.Task) (input, output bool) {
	if q.rest == nil {
		return false, false
	}
	return q.rest.NeedsValues(t)
}

// MatchesValues reports whether a task that passed MatchesRow matches by its stored input and output.
// Redacted values never match.
func (q *Query) MatchesValues(t *task.Task) bool {
	if q.rest == nil {
		return true
	}
	shown := *t
	redact.Task(&shown)
	return q.rest.Values(t, &shown)
}

// both intersects two lists, of which an empty one means everything; false: the intersection is empty.
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

// same merges two values, of which zero means any; false: they differ.
func same[T comparable](a *T, b T) bool {
	var all T
	if *a == all {
		*a = b
	}
	return b == all || *a == b
}
