package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/task"
)

// The needs of hooks.
func TestHooks(t *testing.T) {
	t.Parallel()
	p := parse(t, `
name: nightly
retry: {max_attempts: 3}
tasks:
  fetch: {run: x}
  lint: {run: x, needs: [fetch], allow_failure: true}
  alarm: {run: x, needs: [fetch], if: failed}
  page: {run: x, needs: [alarm]}
  tidy: {run: x, needs: [alarm, page], if: done}
on:
  done: {http: {url: http://a/}, allow_failure: true}
  success: {run: x}
  failure: {run: x, retry: {max_attempts: 5}}
`)
	got := make(map[string]string)
	for _, k := range p.Tasks {
		if k.Hook != "" {
			got[k.Name] = fmt.Sprint(k.Hook, k.If, k.Needs)
		}
	}
	equal(t, "the hooks", fmt.Sprint(got), fmt.Sprint(map[string]string{
		"on done":    "done" + string(task.OnDone) + "[fetch lint alarm page tidy on success on failure]",
		"on success": "success[fetch lint tidy]",                                    // alarm and page do not run without a failure
		"on failure": "failure" + string(task.OnFailed) + "[fetch alarm page tidy]", // lint may fail
	}))
	sub := submit(t, p, pipeline.JobOptions{})
	if n := len(sub.needs["on done"]); n != 7 {
		t.Errorf("on done needs %d tasks of the job, want 7", n)
	}
	for view, want := range map[string]string{
		p.Graph().List():    "5  on success  <- all tasks\n   on failure  <- all tasks\n6  on done  <- all tasks\n",
		p.Graph().DOT():     `  "tidy" -> "on success"` + "\n",
		p.Graph().Mermaid(): "t7 --> t6", // on success, on done
	} {
		if !strings.Contains(view, want) {
			t.Errorf("the graph lacks %q:\n%s", want, view)
		}
	}
	if strings.Contains(p.Graph().DOT(), `"fetch" -> "on`) {
		t.Errorf("the picture has arrows from tasks that others need:\n%s", p.Graph().DOT())
	}
}

// Hooks rerun when any task runs, but not when a task is gone.
func TestUpdateOfHooks(t *testing.T) {
	t.Parallel()
	const src = "name: a\ntasks: {a: {run: %s}, b: {run: b}%s}\non: {failure: {run: f}, done: {run: d}}"
	before := parse(t, fmt.Sprintf(src, "a", ""))
	earlier := make(map[string]pipeline.Earlier)
	for _, k := range submit(t, before, pipeline.JobOptions{}).tasks {
		e := pipeline.Earlier{State: task.Succeeded, Needed: true, Work: k.Metadata[pipeline.MetaWork]}
		if k.Node == "on failure" {
			e.State, e.Needed = task.Cancelled, false
		}
		earlier[k.Node] = e
	}
	for _, c := range []struct{ a, more, runs string }{
		{"a", "", "[]"},
		{"changed", "", "[{a it changed} {on failure it needs a} {on done it needs a}]"},
		{"a", ", c: {run: c}", "[{c it is new} {on failure it needs c} {on done it needs c}]"},
	} {
		u := parse(t, fmt.Sprintf(src, c.a, c.more)).Update(earlier)
		equal(t, "what runs", fmt.Sprint(u.Run), c.runs)
	}
	gone := parse(t, "name: a\ntasks: {a: {run: a}}\non: {failure: {run: f}, done: {run: d}}").Update(earlier)
	equal(t, "what runs when a task is gone", fmt.Sprint(gone.Run, gone.Gone), "[] [b]")
}
