package rules_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestBlobs(t *testing.T) {
	t.Parallel()
	ids := task.NewIDs(nil)
	blob := func() task.Blob { return task.Blob{ID: ids.New(), SHA256: "ab", Size: 3} }
	in, out, value, file := blob(), blob(), blob(), blob()
	tasks := []task.New{{Input: json.RawMessage(`{"$weaver":"blob"}`)}, {Input: in.Value()}}
	rec := store.Record{Step: &task.Step{Value: value.Value()}, Tasks: tasks, Artifacts: []store.NewArtifact{{Blob: file}}}
	for what, c := range map[string]struct{ got, want []task.Blob }{
		"tasks":          {rules.TaskBlobs(tasks), []task.Blob{in}},
		"a record":       {rules.RecordBlobs(&rec), []task.Blob{in, value, file}},
		"a plain record": {rules.RecordBlobs(&store.Record{}), nil},
		"a finish":       {rules.FinishBlobs(&store.Finish{Output: out.Value(), Children: tasks}), []task.Blob{in, out}},
	} {
		if len(c.got) != len(c.want) {
			t.Fatalf("%s: %v, want %v", what, c.got, c.want)
		}
		for i := range c.want {
			if c.got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", what, c.got, c.want)
			}
		}
	}
	for state, want := range map[task.BlobState]bool{"": false, task.BlobPending: true, task.BlobLive: true, task.BlobDeleting: false} {
		if got := rules.Usable(state); got != want {
			t.Errorf("Usable(%q) = %v", state, got)
		}
	}
	if got := rules.PendingFor(&store.CollectBlobs{}); got != store.DefaultPending {
		t.Errorf("PendingFor = %v", got)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	step := task.Step{TaskID: ids.New(), Name: "s", AttemptNo: 2}
	if a := rules.Artifact(&store.NewArtifact{Name: "a", TTL: time.Hour}, &step, now); a.ExpiresAt != now.Add(time.Hour) || a.Step != "s" || a.AttemptNo != 2 || a.TaskID != step.TaskID {
		t.Errorf("Artifact = %+v", a)
	}
	if a := rules.Artifact(&store.NewArtifact{}, &step, now); !a.ExpiresAt.IsZero() {
		t.Errorf("without a TTL it expires at %v", a.ExpiresAt)
	}
}
