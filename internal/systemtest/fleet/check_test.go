package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// execution is one execution of a step's function.
type execution struct {
	task, step string
	attempt    int
}

// check finds what was lost, and steps that were executed again although they were recorded.
func check(ctx context.Context, t *testing.T, db store.Store, client *weaver.Client, c *clients, s setup) {
	snap, err := db.Snapshot(ctx, weaver.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	enqueued := int(c.enqueued.Load())
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	for i := range snap.Tasks {
		k := &snap.Tasks[i]
		if k.State != task.Succeeded {
			t.Errorf("task %s is %s: %v", k.ID, k.State, k.Error)
		}
		if k.JobID.IsZero() && !c.ids[k.ID] {
			t.Errorf("nobody was told of task %s", k.ID)
		}
		delete(c.ids, k.ID)
	}
	if want := enqueued + c.size.nodes; len(snap.Tasks) != want || len(c.ids) != 0 {
		t.Errorf("%d tasks, want %d; %d acknowledged ones are lost", len(snap.Tasks), want, len(c.ids))
	}

	ledger, err := os.ReadFile(s.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	executed := map[execution]int{}
	for line := range bytes.Lines(ledger) {
		var e execution
		if _, err := fmt.Sscan(string(line), &e.task, &e.step, &e.attempt); err != nil {
			t.Fatalf("the ledger has %q: %v", line, err)
		}
		executed[e]++
	}
	recorded := map[execution]int{} // attempt 0: the attempt that recorded the step
	for i := range snap.Steps {
		if k := &snap.Steps[i]; k.State == task.StepCompleted {
			recorded[execution{task: k.TaskID.String(), step: k.Name}] = k.AttemptNo
		}
	}
	outcomes := map[execution]task.Outcome{}
	for i := range snap.Attempts {
		a := &snap.Attempts[i]
		outcomes[execution{task: a.TaskID.String(), attempt: a.No}] = a.Outcome
	}
	repeats := map[task.Outcome]int{}
	for e, n := range executed {
		by := recorded[execution{task: e.task, step: e.step}]
		outcome := outcomes[execution{task: e.task, attempt: e.attempt}]
		switch {
		case n > 1:
			t.Errorf("%+v ran %d times in one attempt", e, n)
		case e.attempt > by:
			t.Errorf("%+v ran again after attempt %d recorded it", e, by)
		case e.attempt < by && outcome == task.OutcomeSuccess:
			t.Errorf("%+v ran, was not recorded, and its attempt succeeded", e)
		case e.attempt < by:
			repeats[outcome]++
		}
	}
	if want := 3*enqueued + c.size.nodes; len(recorded) < want {
		t.Errorf("%d steps are recorded, want %d", len(recorded), want)
	}
	for e, by := range recorded {
		if e.attempt = by; executed[e] == 0 {
			t.Errorf("%+v is recorded and was not executed", e)
		}
	}
	t.Logf("%d executions of %d steps; repeated because the record was lost, by the outcome of their attempt: %v", len(executed), len(recorded), repeats)

	tasks, err := client.JobTasks(ctx, c.job)
	if err != nil || len(tasks) != c.size.nodes {
		t.Fatalf("the job has %d tasks: %v", len(tasks), err)
	}
	for i := range tasks {
		k, err := pack.Get(ctx, client, tasks[i].ID)
		if err != nil {
			t.Error(err)
			continue
		}
		r, err := client.OpenArtifact(ctx, k.Output)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := io.ReadAll(r)
		if cerr := r.Close(); err == nil {
			err = cerr
		}
		if err != nil || !bytes.Equal(got, packed(k.Input)) {
			t.Errorf("the artifact of node %d has %d other bytes: %v", k.Input, len(got), err)
		}
	}
}
