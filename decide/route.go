package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// Route is the handler chosen by a Router, with a reason that is stored with the attempt. The zero value is the
// unnamed handler of the task's type.
type Route struct {
	Handler string // name among the handlers of its type (weaver.HandlerName); "": the unnamed handler
	Type    string // the task type of the handler; "": that of the task
	Reason  string // one sentence for people
}

// Router chooses which of a worker's handlers runs a task. It is asked for each attempt, with the task as claimed.
// Like a Decider it must be pure and safe for concurrent use, so that all attempts of a task run in the same handler.
type Router interface {
	Route(t task.Task) Route
}

// RouteFunc adapts a function to a Router.
type RouteFunc func(t task.Task) Route

// Route implements Router.
func (f RouteFunc) Route(t task.Task) Route { return f(t) }

// Direct routes every task to the unnamed handler of its type.
type Direct struct{}

// Route implements Router.
func (Direct) Route(task.Task) Route { return Route{} }

// Rules is a Router based on the type, metadata and labels of a task. The first matching rule applies; without a
// match the task is routed as by Direct. The reason lists the matched values.
type Rules []Rule

// Rule is a rule of Rules. Empty fields match every task.
type Rule struct {
	Type     string            // of the task
	Metadata map[string]string // all of these must match; the value "" matches any present value
	Labels   map[string]string // as Metadata

	Handler string // handler name; "": the unnamed handler
	Reason  string // default: the matched values
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

// has reports whether got has every value of want.
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
