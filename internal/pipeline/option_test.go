package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/pipeline"
)

// An option with a key in pipelines reaches the task, and the digest covers it.
func TestOptions_ReachTask(t *testing.T) {
	t.Parallel()
	const without = "name: a\ntasks: {a: {run: echo}}\n"
	for _, o := range option.All() {
		if o.In&option.Pipeline == 0 {
			continue
		}
		value := o.Example
		if o.Least > 0 {
			value = o.Least // the example may be the default
		}
		p := parse(t, fmt.Sprintf("name: a\ntasks: {a: {run: echo, %s: %v}}\n", o.Key, value))
		_, tasks, err := p.Job(pipeline.JobOptions{}).Plain()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, o.Key, fmt.Sprint(o.Value(&tasks[0])), fmt.Sprint(value))
		if p.Digest() == parse(t, without).Digest() {
			t.Errorf("the digest does not cover %s", o.Key)
		}
	}
}
