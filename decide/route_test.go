package decide_test

import (
	"testing"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

func TestRules(t *testing.T) {
	t.Parallel()
	rules := decide.Rules{
		{Type: "acme.a.b.v1", Metadata: map[string]string{"tenant": "t1", "region": ""}, Handler: "canary"},
		{Labels: map[string]string{"size": "large"}, Handler: "slow", Reason: "large ones run slowly"},
		{Type: "acme.c.d.v1"},
	}
	every := decide.Rules{{Handler: "only"}}
	meta := func(kv ...string) map[string]string { return map[string]string{kv[0]: kv[1], kv[2]: kv[3]} }
	for name, tc := range map[string]struct {
		rules decide.Rules
		t     task.Task
		want  decide.Route
	}{
		"all match":           {rules, task.Task{Type: "acme.a.b.v1", Metadata: meta("tenant", "t1", "region", "eu")}, decide.Route{Handler: "canary", Reason: "rule 1: type acme.a.b.v1, metadata region=eu, metadata tenant=t1"}},
		"another value":       {rules, task.Task{Type: "acme.a.b.v1", Metadata: meta("tenant", "t2", "region", "eu")}, decide.Route{}},
		"one is not there":    {rules, task.Task{Type: "acme.a.b.v1", Metadata: meta("tenant", "t1", "other", "eu")}, decide.Route{}},
		"another type":        {rules, task.Task{Type: "acme.x.y.v1", Metadata: meta("tenant", "t1", "region", "eu")}, decide.Route{}},
		"by a label":          {rules, task.Task{Type: "acme.x.y.v1", Labels: map[string]string{"size": "large"}}, decide.Route{Handler: "slow", Reason: "large ones run slowly"}},
		"the first one":       {rules, task.Task{Type: "acme.a.b.v1", Metadata: meta("tenant", "t1", "region", "eu"), Labels: map[string]string{"size": "large"}}, decide.Route{Handler: "canary", Reason: "rule 1: type acme.a.b.v1, metadata region=eu, metadata tenant=t1"}},
		"to the unnamed one":  {rules, task.Task{Type: "acme.c.d.v1"}, decide.Route{Reason: "rule 3: type acme.c.d.v1"}},
		"a rule for each one": {every, task.Task{}, decide.Route{Handler: "only", Reason: "rule 1: every task"}},
	} {
		if got := tc.rules.Route(tc.t); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
