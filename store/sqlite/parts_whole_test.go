package sqlite_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Random jobs are the same whether or not they are stored in parts.
func TestLargeJob_IsAsWhole(t *testing.T) {
	t.Parallel()
	whole, inParts := fileFixture(t), fileFixture(t).inParts(3)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		sub := store.Submission{Job: &task.NewJob{ID: whole.ids.New(), Name: "random", Meta: map[string]string{"a": "b"}}}
		if seed%2 == 0 {
			sub.Job.Budget = task.Budget{MaxDuration: time.Hour, MaxCost: 5}
		}
		for i := range 4 + rng.IntN(9) {
			sub.Tasks = append(sub.Tasks, whole.draft(func(n *task.New) {
				n.Node, n.AllowFailure, n.Priority = fmt.Sprint("n", i), rng.IntN(4) == 0, 1+rng.IntN(3)
				switch rng.IntN(6) {
				case 0:
					n.Delay = time.Hour
				case 1:
					n.Labels = map[string]string{"k": "v"}
				case 2:
					n.ConcurrencyKey, n.ConcurrencyLimit = "key", 2
				case 3:
					n.Input = json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)
				case 4:
					n.ExpireAfter, n.Expire = time.Hour, []task.Expiry{{Path: "a", After: time.Minute}}
				case 5:
					n.At = time.Now().Add(time.Hour)
				}
				for j := range i {
					if rng.IntN(2) == 0 {
						kind := []task.EdgeKind{task.OnSuccess, task.OnFailed, task.OnDone}[rng.IntN(3)]
						n.Needs = append(n.Needs, task.Edge{Needs: sub.Tasks[j].ID, Kind: kind})
					}
				}
			}))
		}
		rng.Shuffle(len(sub.Tasks), func(i, j int) { sub.Tasks[i], sub.Tasks[j] = sub.Tasks[j], sub.Tasks[i] })
		for _, f := range []*fixture{whole, inParts} {
			if err := f.submit(t.Context(), sub); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, got := whole.timeless(), inParts.timeless()
	for i := range want.Tasks {
		if !reflect.DeepEqual(got.Tasks[i], want.Tasks[i]) {
			t.Fatalf("in parts the task is\n%+v, want\n%+v", got.Tasks[i], want.Tasks[i])
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the snapshot is\n%+v, want\n%+v", got, want)
	}
	for _, sql := range []string{
		"SELECT group_concat(hex(task_id) || plain || needed || has_payloads || coalesce(open_if_failed, 'none') || job_limits, ' ') FROM (SELECT * FROM weaver_tasks ORDER BY task_id)",
		"SELECT group_concat(hex(task_id) || key || value, ' ') FROM (SELECT * FROM weaver_task_labels ORDER BY task_id)",
		"SELECT group_concat(hex(task_id), ' ') FROM (SELECT * FROM weaver_timers ORDER BY task_id)",
		"SELECT group_concat(hex(task_id) || ' ' || (look_at - set_at), ' ') FROM (SELECT * FROM weaver_expiries ORDER BY task_id)",
	} {
		if got, want := inParts.one(sql), whole.one(sql); got != want {
			t.Errorf("%s:\n%s, want\n%s", sql, got, want)
		}
	}
}

// timeless returns a snapshot without the instants of the insertion.
func (f *fixture) timeless() *store.Snapshot {
	f.Helper()
	s, err := f.db.Snapshot(f.Context(), fixNS)
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range store.Check(s) {
		f.Errorf("store.Check: %v", v)
	}
	zero := func(at *time.Time) {
		if !at.IsZero() {
			*at = time.Unix(0, 0)
		}
	}
	s.Now, s.Generation = time.Time{}, ""
	for i := range s.Tasks {
		n := &s.Tasks[i]
		n.UpdatedAt = time.Time{}
		zero(&n.ReadyAt)
		zero(&n.DeadlineAt)
	}
	for i := range s.Jobs {
		s.Jobs[i].UpdatedAt = time.Time{}
		zero(&s.Jobs[i].DeadlineAt)
	}
	for i := range s.Dispatch {
		s.Dispatch[i].AvailableAt = time.Time{}
	}
	return s
}
