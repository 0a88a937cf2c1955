package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/task"
)

const orderFile = `
name: order
tasks:
  reserve: {run: reserve, undo: {run: release}}
  charge: {run: charge, needs: [reserve], undo: {run: [refund, "{{.tasks.charge.stdout}}"]}}
  check: {run: check, needs: [charge]}
  ship: {run: ship, needs: [check], undo: {http: {url: "http://a/recall"}}}
  mail: {run: "mail", needs: [charge]}
on:
  done: {run: x}
  success: {run: x}
  failure: {run: x}
`

// The needs and dependents of undos.
func TestUndos(t *testing.T) {
	t.Parallel()
	sub := submit(t, parse(t, orderFile), pipeline.JobOptions{})
	got := make(map[string]string)
	for name, edges := range sub.edges {
		got[name] = strings.Join(slices.Sorted(slices.Values(edges)), " ")
	}
	for name, want := range map[string]string{
		"undo reserve": "charge/undone check/undone mail/undone reserve/undo ship/undone undo charge/undone undo ship/undone",
		"undo charge":  "charge/undo check/undone mail/undone reserve/done ship/undone undo ship/undone",
		"undo ship":    "charge/done check/done mail/done reserve/done ship/undo",
		"on failure":   "charge/failed check/failed mail/failed reserve/failed ship/failed undo charge/done undo reserve/done undo ship/done",
		"on success":   "charge/success check/success mail/success reserve/success ship/success undo charge/done undo reserve/done undo ship/done",
		"on done":      "charge/done check/done mail/done on failure/done on success/done reserve/done ship/done undo charge/done undo reserve/done undo ship/done",
	} {
		equal(t, name, got[name], want)
	}
}

func TestUndosInPictures(t *testing.T) {
	t.Parallel()
	p := parse(t, orderFile)
	for view, want := range map[string]string{
		p.Graph().List(): "5  undo ship     <- ship\n6  undo charge   <- charge, undo ship\n7  undo reserve  <- reserve, undo charge\n8  on success  <- all tasks\n   on failure  <- all tasks\n9  on done  <- all tasks\n",
		p.Graph().DOT():  `  "undo charge" -> "undo reserve"` + "\n",
	} {
		if !strings.Contains(view, want) {
			t.Errorf("the graph lacks %q:\n%s", want, view)
		}
	}
	if strings.Contains(p.Graph().DOT(), `"undo ship" -> "on`) {
		t.Errorf("the picture has arrows from undos that come before others:\n%s", p.Graph().DOT())
	}
	last := p.Waves()
	equal(t, "the last waves", fmt.Sprint(last[len(last)-5:]), "[[undo ship] [undo charge] [undo reserve] [on success on failure] [on done]]")
}

// An expanded task has an undo per node.
func TestUndosOfNodes(t *testing.T) {
	t.Parallel()
	p := parse(t, `
name: parcels
tasks:
  pack: {run: [pack, "{{.item}}"], foreach: [a, b], undo: {run: [unpack, "{{.item}}"]}}
`)
	var got []string
	for i := range p.Tasks {
		got = append(got, p.Tasks[i].Name+": "+p.Tasks[i].Does())
	}
	equal(t, "the tasks", strings.Join(got, "; "), "pack[a]: pack a; pack[b]: pack b; undo pack[a]: unpack a; undo pack[b]: unpack b")
}

// An undone task runs again, with its undo.
func TestUpdateOfUndos(t *testing.T) {
	t.Parallel()
	const src = "name: a\ntasks: {a: {run: a, undo: {run: ua}}, b: {run: b, needs: [a], undo: {run: ub}}, c: {run: %s}}"
	earlier := func(undone ...string) map[string]pipeline.Earlier {
		all := make(map[string]pipeline.Earlier)
		for _, k := range submit(t, parse(t, fmt.Sprintf(src, "c")), pipeline.JobOptions{}).tasks {
			e := pipeline.Earlier{State: task.Succeeded, Needed: true, Began: true, Work: k.Metadata[pipeline.MetaWork]}
			if strings.HasPrefix(k.Node, "undo ") {
				e.Began = slices.Contains(undone, k.Node)
				if !e.Began {
					e.State, e.Needed = task.Cancelled, false
				}
			}
			all[k.Node] = e
		}
		return all
	}
	for _, c := range []struct {
		undone []string
		c      string
		runs   string
	}{
		{nil, "c", "[]"},
		{nil, "changed", "[{c it changed}]"},
		{[]string{"undo b"}, "c", "[{b it was undone} {undo b it undoes b}]"},
		{[]string{"undo a"}, "c", "[{a it was undone} {b it needs a} {undo a it undoes a} {undo b it undoes b}]"},
	} {
		p := parse(t, fmt.Sprintf(src, c.c))
		u := p.Update(earlier(c.undone...))
		equal(t, "what runs", fmt.Sprint(u.Run), c.runs)
		if len(u.Run) > 0 {
			equal(t, "the tasks of the job", len(submit(t, p, pipeline.JobOptions{Kept: u.Kept}).order), len(u.Run))
		}
	}
	u, err := parse(t, fmt.Sprintf(src, "c")).UpdateOnly(earlier(), []string{"b"})
	equal(t, "with only b", fmt.Sprint(u.Run, err), "[{b it was asked for} {undo b it undoes b}] <nil>")
	_, err = parse(t, fmt.Sprintf(src, "c")).UpdateOnly(earlier("undo a"), []string{"b"})
	equal(t, "with only b after the undo of a", fmt.Sprint(err), `task "b" needs "a", which has not succeeded: run that, too`)
}
