package storetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// walked returns all stored values, read in pages of a size.
func (e *env) walked(page int) (all []store.StoredValue) {
	for after, n := "", 0; ; n++ {
		_, next, err := e.s.RewriteValues(e.Context(), e.ns, after, page, func(values []store.StoredValue) ([]store.ValueSwap, error) {
			all = append(all, values...)
			return nil, nil
		})
		e.require(err == nil && n < 1000, "RewriteValues(%q): %v", after, err)
		if after = next; after == "" {
			return all
		}
	}
}

func (e *env) swap(swaps ...store.ValueSwap) int {
	n, _, err := e.s.RewriteValues(e.Context(), e.ns, "", 1, func([]store.StoredValue) ([]store.ValueSwap, error) { return swaps, nil })
	e.require(err == nil, "RewriteValues: %v", err)
	return n
}

// places formats values, with each task as its index in ids.
func places(values []store.StoredValue, ids ...task.ID) (list []string) {
	for _, v := range values {
		list = append(list, fmt.Sprintf("%d %s %s %d %d %s: %s", slices.Index(ids, v.Task), v.Kind, v.Name, v.No, v.Try, v.Of, v.Value))
	}
	slices.Sort(list)
	return list
}

// withValues makes tasks that have a value of each kind.
func withValues(e *env) (first, second task.ID) {
	first, second = e.one(), e.one()
	c, d := e.a.take(first), e.a.take(second)
	rec := step(c, "s", `"step"`)
	rec.Events = eventRows(e, 1, 2, 3)
	rec.Artifacts = []store.NewArtifact{{ID: e.newID(), Name: "l.csv", Link: json.RawMessage(`"link"`)}}
	e.record(rec)
	e.record(try(c, "t", 1))
	e.record(checkpoint(c, "cursor", `"checkpoint"`))
	e.operate(store.SendSignal{Task: second, Name: "go", Key: "1", Payload: json.RawMessage(`"one"`)})
	e.operate(store.SendSignal{Task: second, Name: "go", Key: "2", Payload: json.RawMessage(`"two"`)})
	fin := success(c)
	fin.Output, fin.Progress = json.RawMessage(`"output"`), &task.Progress{Current: 1, Message: "half"}
	e.finish(fin)
	e.finish(store.Finish{
		Lease: d.Lease, Outcome: task.OutcomeBlocked, Error: &task.Error{Kind: task.KindHandler, Message: "who?"},
		Decision: &task.Decision{Kind: task.DecideBlock}, Waiting: task.WaitManual,
	})
	e.operate(store.UnblockTask{Task: second, Input: json.RawMessage(`"answer"`)})
	return first, second
}

var valueWalkCases = []testCase{
	{"a walk finds each value once, whatever the size of its pages", func(e *env) {
		first, second := withValues(e)
		input := string(e.task(first).Input)
		of := e.task(first).Type
		want := []string{
			"0 input  0 0 " + of + ": " + input, "1 input  0 0 " + of + ": " + input, "0 output  0 0 " + of + `: "output"`,
			"0 progress  0 0 " + of + `: {"current":1,"message":"half"}`, "1 unblock_input  0 0 " + of + `: "answer"`,
			`0 step s 1 1 : "step"`, `1 signal  1 0 go: "one"`, `1 signal  2 0 go: "two"`, `0 checkpoint cursor 0 0 : "checkpoint"`,
			`0 event  1 0 step.started: {"n":1}`, `0 event  2 0 step.started: {"n":2}`, `0 log  3 0 log.written: {"n":3}`,
			"0 link " + e.history(first).Artifacts[0].ID.String() + ` 0 0 l.csv: "link"`,
		}
		slices.Sort(want)
		for _, page := range []int{1, 2, 3, 0, 5000} {
			e.equal(fmt.Sprintf("the values by pages of %d", page), places(e.walked(page), first, second), want)
		}
		_, _, err := e.s.RewriteValues(e.Context(), e.ns, "x", 0, func([]store.StoredValue) ([]store.ValueSwap, error) { return nil, nil })
		e.wantErr("a cursor that came from nowhere", err, store.ErrBadCursor)
	}},
	{"a value is replaced where it is still what was read", func(e *env) {
		first, second := withValues(e)
		before := e.walked(0)
		var swaps, stale []store.ValueSwap
		for _, v := range before {
			to := json.RawMessage(fmt.Sprintf(`{"was":%q}`, v.Kind))
			if v.Kind == store.ValueProgress {
				to = json.RawMessage(`{"current":1,"message":"swapped"}`)
			}
			swaps = append(swaps, store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: to})
			stale = append(stale, store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: json.RawMessage(`0`)})
		}
		e.equal("swapped", e.swap(swaps...), len(swaps))
		e.unchanged("values that have changed since", func() { e.equal("swapped", e.swap(stale...), 0) })
		after := e.walked(0)
		e.equal("values", len(after), len(before))
		for i := range after {
			e.equal("place", after[i].ValueAt, before[i].ValueAt)
			e.equal("value of "+string(after[i].Kind), string(after[i].Value), string(swaps[i].New))
		}
		e.equal("input", string(e.task(first).Input), `{"was":"input"}`)
		e.equal("progress", *e.task(first).Progress, task.Progress{Current: 1, Message: "swapped"})
		e.equal("unblock input", string(e.task(second).UnblockInput), `{"was":"unblock_input"}`)
		e.equal("step", string(e.history(first).Steps[0].Value), `{"was":"step"}`)
		e.equal("epoch", e.task(first).Epoch, int64(1))
	}},
	{"long values and references are walked and replaced as well", func(e *env) {
		long := json.RawMessage(`"` + string(slices.Repeat([]byte("x"), 20_000)) + `"`)
		d := e.draft()
		d.Input = long
		id := e.enqueue(d)[0]
		c := e.a.take(id)
		fin := success(c)
		fin.Output = long
		e.finish(fin)
		n := 0
		for _, v := range e.walked(0) {
			n += e.swap(store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: append(json.RawMessage(nil), `"short"`...)})
		}
		e.equal("swapped", n, 2)
		e.equal("input", string(e.task(id).Input), `"short"`)
		e.equal("output", string(e.task(id).Output), `"short"`)

		b := e.blob("a")
		d = e.draft()
		d.Input = b.Value()
		e.enqueue(d)
		var blobs []string
		for _, v := range e.walked(1) {
			if v.Kind == store.ValueBlob {
				blobs = append(blobs, string(v.Value))
				e.equal("swapped", e.swap(store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: json.RawMessage(`0`)}), 0)
			}
		}
		e.equal("blobs", blobs, []string{string(b.Value())})
	}},
	{"other namespaces are not walked", func(e *env) {
		other := e.in(otherNamespace)
		id := other.one()
		e.equal("values", len(e.walked(0)), 0)
		v := other.walked(0)[0]
		e.equal("swapped", e.swap(store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: json.RawMessage(`0`)}), 0)
		e.equal("input", string(other.task(id).Input), string(v.Value))
	}},
}
