package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// Route is the handler that a Router chose, with the reason for it, which is kept with
// the attempt. The zero value is the task type's own handler, the one without a name.
type Route struct {
	Handler string // its name among the handlers of its type (weaver.HandlerName); "": the one without a name
	Type    string // the task type of the handler; "": that of the task
	Reason  string // one sentence for people
}

// Router chooses which of a worker's handlers runs a task. It is asked for each
// attempt, with the task as it was claimed. Routing must be pure, like deciding, and
// safe for concurrent use: the same task must not be split between two handlers by
// chance.
type Router interface {
	Route(t task.Task) Route
}

// RouteFunc lets a function be a Router.
type RouteFunc func(t task.Task) Route

// Route implements Router.
func (f RouteFunc) Route(t task.Task) Route { return f(t) }

// Direct routes every task to the handler of its own type that has no name.
type Direct struct{}

// Route implements Router.
func (Direct) Route(task.Task) Route { return Route{} }

// Rules is a Router that goes by the type, the metadata and the labels of a task: the
// first rule that matches decides, and without one the task goes where Direct sends
// it. The reason names what matched.
type Rules []Rule

// Rule is one rule of Rules. Empty fields match every task.
type Rule struct {
	Type     string            // of the task
	Metadata map[string]string // all of these; the value "" matches any value that is there
	Labels   map[string]string // as Metadata

	Handler string // the name of the handler; "": the one without a name
	Reason  string // "": what matched
}

// Route implements Router.
func (rules Rules) Route(t task.Task) Route {
	for i := range rules {
		if r := &rules[i]; r.matches(&t) {
			return Route{Handler: r.Handler, Reason: r.reason(i, &t)}
		}
	}
	return Route{}
}

func (r *Rule) matches(t *task.Task) bool {
	return (r.Type == "" || r.Type == t.Type) && has(t.Metadata, r.Metadata) && has(t.Labels, r.Labels)
}

// has reports whether a task has all values that a rule wants.
func has(got, want map[string]string) bool {
	for k, v := range want {
		if value, there := got[k]; !there || v != "" && v != value {
			return false
		}
	}
	return true
}

func (r *Rule) reason(i int, t *task.Task) string {
	if r.Reason != "" {
		return r.Reason
	}
	var parts []string
	if r.Type != "" {
		parts = append(parts, "type "+r.Type)
	}
	list := func(what string, want, got map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(want)) {
			parts = append(parts, fmt.Sprintf("%s %s=%s", what, k, got[k]))
		}
	}
	list("metadata", r.Metadata, t.Metadata)
	list("label", r.Labels, t.Labels)
	if len(parts) == 0 {
		parts = append(parts, "every task")
	}
	return fmt.Sprintf("rule %d: %s", i+1, strings.Join(parts, ", "))
}
