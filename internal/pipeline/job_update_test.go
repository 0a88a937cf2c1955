package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/task"
)

const updated = `name: report
env: {LANG: C}
tasks:
  join:  {run: "cat a b >c", needs: [left, right]}
  left:  {run: "get a", needs: [setup]}
  right: {run: "get b", needs: [setup], retry: {max_attempts: 3}}
  setup: {run: "mkdir -p x"}
  send:  {run: "send c", needs: [join]}
`

// conditional has an alarm that was not needed, and a dependent of it.
const conditional = `name: report
tasks:
  clean: {run: "clean"}
  send:  {run: "send", needs: [clean]}
  alarm: {run: "alarm", needs: [clean, send], if: failed}
  after: {run: "after", needs: [alarm]}
  tidy:  {run: "tidy", needs: [send], if: done}
`

// A task that was not needed still does not run after its text changed.
func TestUpdateOfConditions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ what, old, new, want string }{
		{"the alarm", "\"alarm\"", "\"alarm2\"", ""},
		{"what follows it", "\"after\"", "\"after2\"", ""},
		{"one of its needs", "\"send\"", "\"send2\"", "[{send it changed} {alarm it needs send} {after it needs alarm} {tidy it needs send}]"},
		{"what runs in any case", "\"tidy\"", "\"tidy2\"", "[{tidy it changed}]"},
		{"a condition", "if: done", "if: success", "[{tidy it changed}]"},
	} {
		earlier := earlierOf(t, conditional)
		for _, node := range []string{"alarm", "after"} {
			e := earlier[node]
			e.State, e.Needed = task.Cancelled, false
			earlier[node] = e
		}
		got := parse(t, strings.ReplaceAll(conditional, tc.old, tc.new)).Update(earlier).Run
		if said := fmt.Sprint(got); said != tc.want && !(tc.want == "" && len(got) == 0) {
			t.Errorf("%s: %s, want %s", tc.what, said, tc.want)
		}
	}
}

// earlierOf returns a job of a file with all tasks succeeded.
func earlierOf(t *testing.T, text string) map[string]pipeline.Earlier {
	t.Helper()
	earlier := make(map[string]pipeline.Earlier)
	for name, info := range submit(t, parse(t, text), pipeline.JobOptions{}).tasks {
		earlier[name] = pipeline.Earlier{State: task.Succeeded, Needed: true, Work: info.Metadata[pipeline.MetaWork]}
	}
	return earlier
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	ended := func(node string, s task.State, needed bool) func(map[string]pipeline.Earlier) {
		return func(m map[string]pipeline.Earlier) {
			e := m[node]
			e.State, e.Needed = s, needed
			m[node] = e
		}
	}
	nothing := func(map[string]pipeline.Earlier) {}
	for _, tc := range []struct {
		what     string
		old, new string // in the text
		before   func(map[string]pipeline.Earlier)
		want     string
	}{
		{"nothing", "", "", nothing, ""},
		{"comments, limits, labels and order", "name: report", "# all of it\nname: report\nlabels: {team: a}\nbudget: {max_attempts_per_task: 9}", nothing, ""},
		{"a retry", "max_attempts: 3", "max_attempts: 4", nothing, ""},
		{"the order of needs", "[left, right]", "[right, left]", nothing, ""},
		{"a command at the end", "send c", "send d", nothing, "send: it changed"},
		{"a command in the middle", "get a", "get aa", nothing, "left: it changed, join: it needs left, send: it needs join"},
		{"the environment of all", "LANG: C", "LANG: D", nothing, "setup: it changed, left: it changed, right: it changed, join: it changed, send: it changed"},
		{"a need less", "get b\", needs: [setup]", "get b\"", nothing, "right: it changed, join: it needs right, send: it needs join"},
		{"a task more", "tasks:", "tasks:\n  more: {run: x}", nothing, "more: it is new"},
		{"a task renamed", "left", "links", nothing, "links: it is new, join: it changed, send: it needs join; gone: left"},
		{"a failure", "", "", ended("right", task.Failed, true), "right: it failed, join: it needs right, send: it needs join"},
		{"a task that was forgotten", "", "", func(m map[string]pipeline.Earlier) {
			m["join"] = pipeline.Earlier{State: task.Succeeded, Needed: true, Forgotten: true}
		}, "join: it was forgotten, send: it needs join"},
		{"a cancel", "", "", ended("send", task.Cancelled, true), "send: it had not succeeded"},
		{"not needed", "", "", ended("send", task.Cancelled, false), ""},
		{"a task that the file did not have when its need ran again", "", "", func(m map[string]pipeline.Earlier) {
			for _, node := range []string{"left", "send"} {
				e := m[node]
				e.Age = 1
				m[node] = e
			}
		}, "left: it needs setup, join: it needs left, send: it needs join"},
		{"unfinished", "", "", ended("join", task.Pending, true), "join: it had not succeeded, send: it needs join"},
	} {
		earlier := earlierOf(t, updated)
		tc.before(earlier)
		p := parse(t, strings.ReplaceAll(updated, tc.old, tc.new))
		u := p.Update(earlier)
		var got []string
		for _, r := range u.Run {
			got = append(got, r.Name+": "+r.Why)
		}
		said := strings.Join(got, ", ")
		if len(u.Gone) > 0 {
			said += "; gone: " + strings.Join(u.Gone, ", ")
		}
		if said != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, said, tc.want)
		}
		if len(u.Run)+len(u.Kept) != len(p.Tasks) {
			t.Errorf("%s: %d run and %d are kept of %d", tc.what, len(u.Run), len(u.Kept), len(p.Tasks))
		}
	}
}

// Kept tasks are neither in the job nor needs.
func TestJobWithoutKeptTasks(t *testing.T) {
	t.Parallel()
	p := parse(t, updated)
	s := submit(t, p, pipeline.JobOptions{Kept: []string{"setup", "right"}})
	var got []string
	for _, name := range s.order {
		got = append(got, fmt.Sprintf("%s needs %v", name, s.needs[name]))
	}
	if said := strings.Join(got, ", "); said != "join needs [left], left needs [], send needs [join]" {
		t.Errorf("the job has %s", said)
	}
}

// Requested tasks run again, by the name of a node or of an expanded task.
func TestUpdateOnDemand(t *testing.T) {
	t.Parallel()
	p := parse(t, "name: n\ntasks: {a: {run: x}, b: {run: [x, '{{.item}}'], foreach: [u, v], needs: [a]}, c: {run: x, needs: [b]}, d: {run: x, needs: [a], if: done}}")
	earlier := make(map[string]pipeline.Earlier)
	for _, k := range submit(t, p, pipeline.JobOptions{}).tasks {
		earlier[k.Node] = pipeline.Earlier{State: task.Succeeded, Needed: true, Work: k.Metadata[pipeline.MetaWork]}
	}
	for _, c := range []struct {
		name       string
		from, only string
	}{
		{"b", "[{b[u] it was asked for} {b[v] it was asked for} {c it needs b[u]}]", "[{b[u] it was asked for} {b[v] it was asked for}]"},
		{"b[v]", "[{b[v] it was asked for} {c it needs b[v]}]", "[{b[v] it was asked for}]"},
	} {
		from, err := p.UpdateFrom(earlier, []string{c.name})
		equal(t, "from "+c.name, fmt.Sprint(from.Run, err), c.from+" <nil>")
		only, err := p.UpdateOnly(earlier, []string{c.name})
		equal(t, "only "+c.name, fmt.Sprint(only.Run, len(only.Kept)+len(only.Run), err), c.only+" 5 <nil>")
	}
	earlier["a"] = pipeline.Earlier{State: task.Failed, Needed: true}
	_, err := p.UpdateOnly(earlier, []string{"b"})
	equal(t, "a need that failed", fmt.Sprint(err), `task "b[u]" needs "a", which has not succeeded: run that, too`)
	for _, e := range []pipeline.Earlier{{State: task.Failed, Needed: true, Allowed: true}, {State: task.Succeeded, Needed: true}} {
		earlier["a"] = e
		_, err = p.UpdateOnly(earlier, []string{"b"})
		equal(t, "a need that is met", err, nil)
	}
	earlier["a"] = pipeline.Earlier{State: task.Failed, Needed: true}
	_, err = p.UpdateOnly(earlier, []string{"d"})
	equal(t, "a need that has ended", err, nil)
}
