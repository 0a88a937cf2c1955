package sqlite_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A plain task runs exactly these numbers of statements and writes these numbers of rows,
// alone and in a batch. Changing one of them is a decision.
func TestCost_PlainTask(t *testing.T) {
	t.Parallel()
	labelled := func(n *task.New) { n.Labels = map[string]string{"team": "pay"} }
	for _, of := range []struct {
		name   string
		tasks  int
		change func(*task.New)
		ends   task.Outcome
		want   string
	}{
		{"plain, succeeds", 1, func(*task.New) {}, task.OutcomeSuccess, "enqueue 5/2 claim 10/3 step 7/2 step 7/2 finish 8/3"},
		{"plain, fails", 1, func(*task.New) {}, task.OutcomeFailure, "enqueue 5/2 claim 10/3 step 7/2 step 7/2 finish 9/5"},
		{"labelled, succeeds", 1, labelled, task.OutcomeSuccess, "enqueue 6/3 claim 10/3 step 7/2 step 7/2 finish 8/3"},
		{"plain, eight succeed", 8, func(*task.New) {}, task.OutcomeSuccess, "enqueue 19/16 claim 10/17 step 7/16 step 7/16 finish 8/17"},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			f := memoryFixture(t)
			var line string
			for range 2 { // the first round also reads the lanes
				var got []string
				costs := func(what string, do func()) {
					n, rows, err := f.db.CountWrites(t.Context(), do)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("%s %d/%d", what, n, rows))
				}
				var claimed []store.Claimed
				costs("enqueue", func() { f.enqueue(of.tasks, of.change) })
				costs("claim", func() { claimed = f.claim("w", of.tasks) })
				for i := range 2 {
					costs("step", func() { f.steps(claimed, i) })
				}
				costs("finish", func() { f.endAll(claimed, of.ends) })
				line = strings.Join(got, " ")
			}
			if line != of.want {
				t.Errorf("the statements and rows are\n%s\nwant\n%s", line, of.want)
			}
		})
	}
}

// steps records the i-th step of each claimed task, in one batch.
func (f *fixture) steps(claimed []store.Claimed, i int) {
	f.Helper()
	recs := make([]store.Record, len(claimed))
	for j := range claimed {
		recs[j] = store.Record{Lease: claimed[j].Lease, Step: &task.Step{
			Name: fmt.Sprint("s", i), Index: i, Kind: task.KindStep, State: task.StepCompleted, Try: 1, Value: json.RawMessage(`1`),
		}}
	}
	got, err := f.db.Record(f.Context(), fixNS, recs...)
	for _, r := range got {
		if err == nil {
			err = r.Err
		}
	}
	if err != nil {
		f.Fatalf("Record: %v", err)
	}
}

// endAll finishes the attempts of claimed tasks with an outcome. A failure is permanent.
func (f *fixture) endAll(claimed []store.Claimed, o task.Outcome) {
	f.Helper()
	if o == task.OutcomeSuccess {
		f.finish(claimed...)
		return
	}
	for i := range claimed {
		got, err := f.db.Finish(f.Context(), fixNS, store.Finish{
			Lease: claimed[i].Lease, Outcome: o, CodeVersion: 1, Error: &task.Error{Kind: task.KindHandler, Message: "no"},
			Decision: &task.Decision{Kind: task.DecideMarkDead},
		})
		if err != nil || got[0].Err != nil {
			f.Fatalf("Finish: %v %v", err, got)
		}
	}
}
