package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// COPY stores many tasks with shared columns. Its rows equal those of the statement for few tasks.
// A submission that is repeated or partly stored stores each task once.
func TestManyAreCopied(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	u := connect(t, url)
	const many = 700 // more than copyFrom in store/postgres/copy.go
	for way, url := range map[string]string{"direct": url, "pooled": pgtest.Bouncer(t, url, "transaction")} {
		db := openURL(t, url)
		w := &planWork{TB: t, db: db, ids: task.NewIDs(nil)}
		for what, change := range map[string]func(*task.New){
			"plain":    func(n *task.New) { n.Type = "acme.plain." + way + ".v1" },
			"no input": func(n *task.New) { n.Type, n.Input = "acme.none."+way+".v1", nil },
			"labels":   func(n *task.New) { n.Type, n.Labels = "acme.labels."+way+".v1", map[string]string{"team": "a"} },
			"all options": func(n *task.New) {
				n.Type, n.Priority, n.SchemaVersion, n.MaxAttempts, n.MaxRepairs = "acme.all."+way+".v1", 2, 3, 4, 5
				n.ConcurrencyKey, n.ConcurrencyLimit, n.AllowFailure = "é/"+way, 3, true
				n.Timeout, n.CleanupWhenCancelled, n.MaxCost = time.Minute, true, 7
				n.Input = []byte(`"` + strings.Repeat("long ", 300) + `"`)
			},
		} {
			var sub store.Submission
			for range many {
				sub.Tasks = append(sub.Tasks, w.draft(change))
			}
			typ := sub.Tasks[0].Type
			rows := func() (tasks, dispatch []string) {
				tasks = u.texts(`SELECT DISTINCT (to_jsonb(t) - 'task_id' - 'created_at' - 'updated_at')::text FROM weaver.weaver_tasks t WHERE task_type = '` + typ + `'`)
				dispatch = u.texts(`SELECT DISTINCT (to_jsonb(o) - 'task_id' - 'available_at')::text FROM weaver.weaver_outbox_events o WHERE task_type = '` + typ + `'`)
				return tasks, dispatch
			}
			w.submit(store.Submission{Tasks: sub.Tasks[:1]})
			tasks, dispatch := rows()
			w.submit(sub) // its first task already exists
			u.exec(`DELETE FROM weaver.weaver_task_labels; DELETE FROM weaver.weaver_tasks WHERE task_type = '` + typ + `'; DELETE FROM weaver.weaver_outbox_events WHERE task_type = '` + typ + `'`)
			w.submit(sub)
			w.submit(sub)
			if gotTasks, gotDispatch := rows(); !slices.Equal(gotTasks, tasks) || !slices.Equal(gotDispatch, dispatch) || len(tasks) != 1 || len(dispatch) != 1 {
				t.Errorf("%s, %s: the rows are\n%s\n%s\nwant\n%s\n%s", way, what, gotTasks, gotDispatch, tasks, dispatch)
			}
			got := u.texts(`SELECT count(*) || ' ' || count(DISTINCT t.task_id) || ' ' || bool_and(t.updated_at = o.available_at AND t.updated_at >= t.created_at - 1000000)
				FROM weaver.weaver_tasks t JOIN weaver.weaver_outbox_events o USING (namespace, task_id) WHERE t.task_type = '` + typ + `'`)
			if got[0] != "700 700 true" {
				t.Errorf("%s, %s: rows, tasks, whether their times agree: %s", way, what, got[0])
			}
			labels := u.texts(`SELECT count(*)::text FROM weaver.weaver_task_labels l JOIN weaver.weaver_tasks t USING (namespace, task_id) WHERE t.task_type = '` + typ + `'`)
			if want := map[bool]string{true: "700", false: "0"}[what == "labels"]; labels[0] != want {
				t.Errorf("%s, %s: %s labels are stored, want %s", way, what, labels[0], want)
			}
			taken := w.claim(many, typ)
			for i := range taken {
				if n := sub.Tasks[slices.IndexFunc(sub.Tasks, func(n task.New) bool { return n.ID == taken[i].Task.ID })]; string(taken[i].Task.Input) != string(n.Input) {
					t.Fatalf("%s, %s: the input is %s, want %s", way, what, taken[i].Task.Input, n.Input)
				}
			}
			if want := map[bool]int{true: 3, false: many}[what == "all options"]; len(taken) != want {
				t.Errorf("%s, %s: %d tasks were claimed, want %d", way, what, len(taken), want)
			}
		}
	}
}

// One COPY takes no longer than a statement may: more rows are split over several.
func TestVeryManyAreCopied(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	w := &planWork{TB: t, db: openURL(t, url), ids: task.NewIDs(nil)}
	w.enqueue(5_600) // more than copyMost in store/postgres/copy.go
	got := connect(t, url).texts(`SELECT count(DISTINCT t.task_id)::text FROM weaver.weaver_tasks t JOIN weaver.weaver_outbox_events o USING (namespace, task_id)`)
	if got[0] != "5600" {
		t.Errorf("%s tasks are stored", got[0])
	}
}

// A text that the server cannot store causes the same error as in a small submission, and nothing
// is stored.
func TestTextThatIsNotCopied(t *testing.T) {
	t.Parallel()
	w := &planWork{TB: t, db: openURL(t, pgtest.Migrated(t, "weaver", migrateURL)), ids: task.NewIDs(nil)}
	var sub store.Submission
	for range 700 {
		sub.Tasks = append(sub.Tasks, w.draft(func(n *task.New) { n.Input = []byte("\"\xff\"") }))
	}
	if _, err := w.db.Enqueue(t.Context(), planNS, nil, sub); err == nil || !strings.Contains(err.Error(), "stores only UTF-8 text") || strings.Contains(err.Error(), "COPY") {
		t.Errorf("Enqueue: %v", err)
	}
	w.enqueue(700) // also if the pool returns the same connection
}
