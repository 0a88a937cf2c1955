package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/task"
)

// objects parses a JSON stream line by line.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if !strings.HasPrefix(line, `{"event":"`) || !strings.HasSuffix(line, "}\n") {
			t.Errorf("the line does not begin with its event: %s", line)
		}
		all = append(all, o)
	}
	return all
}

func TestJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("fetch", "clean < fetch")
		var out output
		m, end := running(t, view.Config{Out: &out, Format: view.JSON, Color: true, Namespace: "acme"}, j)
		m.Note("for people")
		m.Emit(j.Starts("fetch", time.Now()))
		m.Emit(j.Prints("fetch", "<b>\x1b[1m\n"))
		m.Logger().Error("oh", "task_id", j.Task("fetch").ID, "error", errors.New("no"), slog.Group("at", "line", 3))
		time.Sleep(time.Second)
		m.Emit(j.Retries("fetch", "exit status 3", time.Second, time.Now()))
		time.Sleep(time.Second)
		j.Starts("fetch", time.Now()) // by another process
		time.Sleep(time.Second)
		m.Reconcile(j.Snapshot())
		j.Fails("fetch", "exit status 4", time.Now())
		end()
		m.Reconcile(j.Snapshot())
		j.State, j.FinishedAt = task.JobFailed, time.Now()
		if err := m.Summary(j.Snapshot(), nil); err != nil {
			t.Error(err)
		}
		m.Logger().Error("too late")
		m.Emit(j.Prints("fetch", "too late"))
		id, task1 := j.ID.String(), fmt.Sprintf(`"namespace":"default","task_id":"%s","task_type":"weaver.exec.run.v1","job_id":"%s","node":"fetch"`, j.Tasks[0].ID, j.ID)
		task2 := strings.NewReplacer(j.Tasks[0].ID.String(), j.Tasks[1].ID.String(), "fetch", "clean").Replace(task1)
		wantText(t, out.String(), `
{"event":"job.started","timestamp":"2000-01-01T00:00:00Z","namespace":"acme","job_id":"`+id+`","name":"nightly-report","tasks":2,"resumed":false}
{"event":"task.started","timestamp":"2000-01-01T00:00:00Z",`+task1+`,"attempt_no":1}
{"event":"stream.chunk","timestamp":"2000-01-01T00:00:00Z",`+task1+`,"attempt_no":1,"stream":"stdout","data":"<b>\u001b[1m\n"}
{"event":"log","timestamp":"2000-01-01T00:00:00Z","level":"ERROR","message":"oh","data":{"at.line":3,"error":"no","task_id":"`+j.Tasks[0].ID.String()+`"}}
{"event":"task.retrying","timestamp":"2000-01-01T00:00:01Z",`+task1+`,"attempt_no":1,"error":{"kind":"handler_error","message":"exit status 3"},"delay_ns":1000000000,"duration_ns":1000000000}
{"event":"task.started","timestamp":"2000-01-01T00:00:02Z",`+task1+`,"attempt_no":2}
{"event":"task.failed","timestamp":"2000-01-01T00:00:03Z",`+task1+`,"attempt_no":2,"error":{"kind":"handler_error","message":"exit status 4"},"duration_ns":1000000000}
{"event":"task.cancelled","timestamp":"2000-01-01T00:00:03Z",`+task2+`,"error":{"kind":"dependency_failed","message":"needs task fetch, which failed"},"duration_ns":0}
{"event":"job.finished","timestamp":"2000-01-01T00:00:03Z","namespace":"default","job_id":"`+id+`","name":"nightly-report","state":"failed","duration_ns":3000000000,"tasks":[{"name":"fetch","id":"`+j.Tasks[0].ID.String()+`","state":"failed","attempts":2,"duration_ns":1000000000,"error":{"kind":"handler_error","message":"exit status 4"}},{"name":"clean","id":"`+j.Tasks[1].ID.String()+`","state":"cancelled","attempts":0,"duration_ns":0,"error":{"kind":"dependency_failed","message":"needs task fetch, which failed"}}],"critical_path":["fetch"],"critical_path_duration_ns":1000000000}
`)
		objects(t, out.String())
	})
}

// A worker may claim tasks of a job before the submitting process first reads it.
func TestANewJobThatRunsAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("a", "b", "c < b", "d")
		j.Starts("a", time.Now())
		j.Starts("b", time.Now())
		j.Fails("b", "no", time.Now())
		var out output
		m, end := running(t, view.Config{Out: &out, Format: view.JSON, New: true}, j)
		m.Reconcile(j.Snapshot())
		m.Reconcile(j.Snapshot())
		end()
		want := []string{"job.started <nil> false", "task.started a <nil>", "task.started b <nil>", "task.failed b <nil>", "task.cancelled c <nil>"}
		var got []string
		for _, o := range objects(t, out.String()) {
			got = append(got, fmt.Sprint(o["event"], " ", o["node"], " ", o["resumed"]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
	})
}
