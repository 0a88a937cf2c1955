package postgres_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

var verbSeeds = flag.Int("verbseeds", 2, "random plays of TestVerbsBySets")

// Commands of one verb that are applied in sets have the same results, rows of all tables, and
// notices as one by one.
func TestVerbsBySets_AreThoseOneByOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*verbSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newTwins(t, seed)
			for range 40 {
				w.step()
			}
			if w.done < 100 {
				t.Errorf("%d commands changed tasks, want 100 at least", w.done)
			}
		})
	}
}

// twins are two databases that get the same calls; one of them does not use sets.
type twins struct {
	*testing.T
	rnd  *rand.Rand
	now  atomic.Pointer[time.Time]
	side [2]*twin
	ids  []task.ID
	jobs []task.ID
	busy []task.ID // claimed
	done int       // commands that changed a task
}

type twin struct {
	db     *postgres.DB
	u      *user
	leases map[task.ID]task.Lease
	all    string // the statement that reads all rows

	mu      sync.Mutex
	notices []store.Notice
}

// later advances the clock of both, which background connections read too.
func (w *twins) later(by time.Duration) {
	at := w.now.Load().Add(by)
	w.now.Store(&at)
}

func newTwins(t *testing.T, seed uint64) *twins {
	w := &twins{T: t, rnd: rand.New(rand.NewPCG(seed, 1))}
	start := time.UnixMicro(1_800_000_000_000_000)
	w.now.Store(&start)
	for i := range w.side {
		url := pgtest.Migrated(t, "weaver", migrateURL)
		s := &twin{db: openURL(t, url, postgres.Clock(func() time.Time { return *w.now.Load() }), postgres.LockFolder(t.TempDir())), u: connect(t, url), leases: make(map[task.ID]task.Lease)}
		s.db.OneByOne = i == 1
		stop, _ := s.db.Notify(space, nil, func(n store.Notice) {
			if n.Changed && !n.External { // the time of external notices is not fixed
				s.mu.Lock()
				defer s.mu.Unlock()
				s.notices = append(s.notices, n)
			}
		})
		t.Cleanup(stop)
		if err := keepFeed(t.Context(), s.db, space, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.db.Join(t.Context(), space, store.WorkerInfo{ID: "w", Name: "host:1", TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		w.side[i] = s
	}
	return w
}

// both calls do on both databases and compares the results.
func (w *twins) both(what string, do func(s *twin) (any, error)) {
	w.Helper()
	w.later(time.Duration(1+w.rnd.IntN(1_000_000)) * time.Microsecond)
	var got [2]any
	var notices [2][]store.Notice
	for i, s := range w.side {
		s.told()
		res, err := do(s)
		if err != nil {
			w.Fatalf("%s: %v", what, err)
		}
		got[i], notices[i] = res, s.told()
	}
	if !reflect.DeepEqual(got[0], got[1]) {
		w.Fatalf("%s:\nin sets:    %+v\none by one: %+v", what, got[0], got[1])
	}
	if !reflect.DeepEqual(notices[0], notices[1]) {
		w.Fatalf("%s: notices\nin sets:    %+v\none by one: %+v", what, notices[0], notices[1])
	}
}

// same compares the rows of both.
func (w *twins) same(what string) {
	w.Helper()
	a, b := w.side[0].rows(), w.side[1].rows()
	if slices.Equal(a, b) {
		return
	}
	only := func(a, b []string) string {
		rows := slices.DeleteFunc(slices.Clone(a), func(r string) bool { return slices.Contains(b, r) })
		return strings.Join(rows[:min(5, len(rows))], "\n")
	}
	w.Fatalf("%s: rows\nin sets:\n%s\none by one:\n%s", what, only(a, b), only(b, a))
}

// told returns the notices since the last call.
func (s *twin) told() []store.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.notices
	s.notices = nil
	return list
}

// rows returns the rows of all tables without the values that differ between databases.
func (s *twin) rows() []string {
	if s.all == "" {
		var each []string
		for _, name := range s.u.texts("SELECT tablename::text FROM pg_tables WHERE schemaname = 'weaver' ORDER BY 1") {
			row := "t::text"
			switch name {
			case "weaver_store_meta", "weaver_schema_versions", "weaver_workers":
				continue
			case "weaver_feed": // the positions of one statement's rows have no fixed order
				row = "row(at, attempt_no, epoch, seq, kind, task_id, job_id, task_type, queue, state, waiting, name)::text"
			}
			each = append(each, fmt.Sprintf("SELECT '%s ' || %s FROM %[1]s t", name, row))
		}
		s.all = strings.Join(each, " UNION ALL ") + " ORDER BY 1"
	}
	return s.u.texts(s.all)
}

// anyOf returns a random element of a list.
func anyOf[T any](w *twins, list []T) T { return list[w.rnd.IntN(len(list))] }

// oneOf returns true with a probability of 1/n.
func (w *twins) oneOf(n int) bool { return w.rnd.IntN(n) == 0 }

func (w *twins) step() {
	switch w.rnd.IntN(8) {
	case 0, 1:
		w.enqueue()
	case 2, 3:
		w.claim()
		w.record()
		w.finish()
	case 4:
		w.pause()
	default:
		if w.oneOf(2) {
			w.beside()
		}
		w.operate()
	}
}

func (w *twins) draft() task.New {
	n := task.New{
		ID: drawn.New(), Type: "t", Queue: task.DefaultQueue, Input: []byte(`1`), SchemaVersion: 1, Priority: task.DefaultPriority,
		MaxAttempts: 1 + w.rnd.IntN(2), MaxRepairs: 1, Backoff: time.Second, BackoffMax: time.Second, Labels: map[string]string{},
	}
	if w.oneOf(4) {
		n.Delay = time.Hour
	}
	if w.oneOf(4) {
		n.Labels["a"], n.Labels[`b"`] = "1", fmt.Sprint(w.rnd.IntN(3))
	}
	if w.oneOf(4) {
		n.IdempotencyKey = n.ID.String()
	}
	if w.oneOf(6) {
		n.ExpireAfter = time.Duration(1+w.rnd.IntN(60)) * time.Second
	}
	if w.oneOf(10) {
		n.ConcurrencyKey, n.ConcurrencyLimit = fmt.Sprint("k", w.rnd.IntN(2)), 1
	}
	n.CleanupWhenCancelled = w.oneOf(8)
	if w.oneOf(8) {
		n.MaxCost = 1000
	}
	return n
}

func (w *twins) enqueue() {
	sub := store.Submission{}
	for range 5 + w.rnd.IntN(80) {
		sub.Tasks = append(sub.Tasks, w.draft())
	}
	if w.oneOf(3) {
		sub.Job = &task.NewJob{ID: drawn.New(), Name: "j"}
		if w.oneOf(3) {
			sub.Job.Budget = task.Budget{MaxTotalAttempts: 50}
		}
		w.jobs = append(w.jobs, sub.Job.ID)
		for i := range sub.Tasks {
			n := &sub.Tasks[i]
			n.Node, n.ExpireAfter, n.IdempotencyKey, n.AllowFailure = fmt.Sprint("n", i), 0, "", w.oneOf(4)
			if i > 0 && w.oneOf(12) {
				n.Needs = []task.Edge{{Needs: sub.Tasks[w.rnd.IntN(i)].ID, Kind: anyOf(w, []task.EdgeKind{task.OnSuccess, task.OnDone})}}
			}
		}
	}
	for i := range sub.Tasks {
		w.ids = append(w.ids, sub.Tasks[i].ID)
	}
	w.both("enqueue", func(s *twin) (any, error) { return s.db.Enqueue(w.Context(), space, nil, sub) })
}

func (w *twins) claim() { w.claimed() }

// claimed claims the given tasks; without arguments it claims any.
func (w *twins) claimed(ids ...task.ID) {
	req := store.ClaimRequest{Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: time.Hour, Limit: 1 + w.rnd.IntN(100), Slots: 1000, Types: map[string]int{"t": 1}, IDs: ids}
	if len(ids) > 0 {
		req.Limit = len(ids)
	}
	w.both("claim", func(s *twin) (any, error) {
		got, err := s.db.Claim(w.Context(), space, req)
		w.busy = nil
		for _, c := range got.Tasks {
			w.busy, s.leases[c.Task.ID] = append(w.busy, c.Task.ID), c.Lease
		}
		slices.SortFunc(w.busy, task.ID.Compare)
		return w.busy, err
	})
}

func (w *twins) record() {
	var recs []store.Record
	for _, id := range w.busy {
		if !w.oneOf(3) {
			continue
		}
		st := task.Step{Name: "a", Kind: task.KindStep, State: task.StepCompleted, Try: 1, Value: []byte(`1`), Cost: int64(w.rnd.IntN(3))}
		if w.oneOf(8) {
			st.Undo, st.UndoNo = task.UndoOpen, 1
		} else if w.oneOf(4) {
			st.Name, st.Kind = "tidy", task.KindCleanup
		}
		rec := store.Record{Lease: task.Lease{Task: id}, Step: &st}
		for i := range w.rnd.IntN(3) * w.rnd.IntN(30) { // 50 are too many for a set
			rec.Events = append(rec.Events, store.EventRow{Seq: int64(i + 1), Type: anyOf(w, []string{"log", "x"}), At: *w.now.Load(), Body: []byte(`{}`)})
		}
		recs = append(recs, rec)
	}
	w.both("record", func(s *twin) (any, error) {
		list := slices.Clone(recs)
		for i := range list {
			st := *list[i].Step
			list[i].Lease, list[i].Step = s.leases[list[i].Lease.Task], &st
		}
		got, err := s.db.Record(w.Context(), space, list...)
		var refused []string
		for i := range got {
			refused = append(refused, fmt.Sprint(got[i].Err))
		}
		return refused, err
	})
}

func (w *twins) finish() {
	w.end(task.DecideRetry, task.DecideMarkDead, task.DecideMarkDead, task.DecideBlock)
}

// end ends the attempts of claimed tasks with one of the decisions. If there are several decisions,
// some tasks succeed and some keep running.
func (w *twins) end(decisions ...task.DecisionKind) {
	var fins []store.Finish
	for _, id := range w.busy {
		f := store.Finish{Lease: task.Lease{Task: id}, CodeVersion: 1, Outcome: task.OutcomeSuccess, Output: []byte(`1`)}
		if len(decisions) > 1 && w.oneOf(12) {
			continue
		}
		if len(decisions) == 1 || !w.oneOf(3) {
			f.Outcome, f.Output, f.Error = task.OutcomeFailure, nil, &task.Error{Kind: task.KindHandler, Message: "no luck"}
			f.Decision = &task.Decision{Kind: anyOf(w, decisions), Reason: task.Reason{Policy: "test", Version: 1, Text: "so"}}
		}
		fins = append(fins, f)
	}
	if len(fins) == 0 {
		return
	}
	w.both("finish", func(s *twin) (any, error) {
		list := slices.Clone(fins)
		for i := range list {
			list[i].Lease = s.leases[list[i].Lease.Task]
		}
		return s.db.Finish(w.Context(), space, list...)
	})
}

func (w *twins) pause() {
	if len(w.ids) == 0 {
		return
	}
	cmd := store.Command(store.PauseTask{Task: anyOf(w, w.ids)})
	if w.oneOf(3) {
		cmd = store.ResumeTask{Task: anyOf(w, w.ids)}
	}
	w.commands(cmd)
}

// beside writes rows of other tables, and counters, for some tasks.
func (w *twins) beside() {
	if len(w.ids) == 0 {
		return
	}
	sql := anyOf(w, []string{
		"INSERT INTO weaver_artifacts (namespace, task_id, kind, artifact_id, blob_id, created_at) SELECT namespace, task_id, 'artifact', '\\x01', '\\x02', 1",
		"INSERT INTO weaver_signals (namespace, task_id, seq, sent_at, name, key, actor, payload) SELECT namespace, task_id, 1, 1, 'n', 'k', '', ''",
		"INSERT INTO weaver_checkpoints (namespace, task_id, attempt_no, saved_at, name, value) SELECT namespace, task_id, 1, 1, 'n', '1'",
		"INSERT INTO weaver_payloads (namespace, task_id, kind, data) SELECT namespace, task_id, 'unblock_for', '1'",
		"INSERT INTO weaver_chores (namespace, kind, subject, position) SELECT namespace, 'delete_task', task_id, ''",
		"UPDATE weaver_tasks SET values_dropped = 2",
		"UPDATE weaver_tasks SET crash_count = 2, quarantine_losses = 1, internal_count = 3, repair_count = 2, idle_attempts = 4, attempt_count = 9",
	})
	where := "task_id IN ("
	for i := range 1 + w.rnd.IntN(6) {
		if i > 0 {
			where += ", "
		}
		where += fmt.Sprintf("'\\x%x'", anyOf(w, w.ids))
	}
	where += ") AND lease_id IS NULL"
	switch {
	case sql[0] == 'I':
		sql += " FROM weaver_tasks"
		where += " ON CONFLICT DO NOTHING"
	case strings.Contains(sql, "crash_count"):
		where = "lease_id IS NULL"
	}
	w.both("write beside", func(s *twin) (any, error) {
		s.u.exec(sql + " WHERE " + where)
		s.u.exec("UPDATE weaver_tasks t SET has_payloads = 1 FROM weaver_payloads p WHERE p.namespace = t.namespace AND p.task_id = t.task_id")
		return nil, nil
	})
}

// operate applies commands, mostly of one verb and to tasks in a fitting state.
func (w *twins) operate() {
	if len(w.ids) == 0 {
		return
	}
	verb := w.rnd.IntN(4)
	states := [][]string{{"pending", "ready"}, {"failed", "cancelled"}, {"succeeded", "failed", "cancelled"}, {"blocked"}}[verb]
	var fit []task.ID
	for _, text := range w.side[0].u.texts("SELECT encode(task_id, 'hex') FROM weaver_tasks WHERE state IN ('" + strings.Join(states, "', '") + "') ORDER BY 1") {
		b, err := hex.DecodeString(text)
		if err != nil {
			w.Fatal(err)
		}
		fit = append(fit, task.ID(b))
	}
	w.rnd.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	fit = fit[:len(fit)*w.rnd.IntN(101)/100]
	var cmds []store.Command
	for _, id := range fit {
		if w.oneOf(30) {
			id = anyOf(w, w.ids) // a repeated task, or one in another state
		}
		if w.oneOf(60) {
			id = drawn.New()
		}
		v := verb
		if w.oneOf(40) {
			v = w.rnd.IntN(4)
		}
		cmds = append(cmds, w.command(v, id))
	}
	if len(cmds) > 0 {
		w.commands(cmds...)
	}
}

func (w *twins) command(verb int, id task.ID) store.Command {
	audit := store.Audit{By: anyOf(w, []string{"", "ann", `o"b`}), Reason: anyOf(w, []string{"", "so it is"})}
	var seen store.Seen
	if w.oneOf(20) {
		seen.Epoch = int64(w.rnd.IntN(2))
	}
	switch verb {
	case 0:
		return store.CancelTask{Audit: audit, Seen: seen, Task: id, Force: w.oneOf(8), Abandon: w.oneOf(40), Spare: w.oneOf(2)}
	case 1:
		cmd := store.RetryTask{Audit: audit, Seen: seen, Task: id, KeepSteps: w.oneOf(4), Cleanup: w.oneOf(30)}
		if w.oneOf(20) {
			cmd.AddAttempts, cmd.AddCost = 1, 1
		}
		return cmd
	case 2:
		return store.DeleteTask{Audit: audit, Seen: seen, Task: id}
	}
	cmd := store.UnblockTask{Audit: audit, Seen: seen, Task: id}
	if w.oneOf(10) {
		cmd.Input = []byte(`2`)
	}
	return cmd
}

func (w *twins) commands(cmds ...store.Command) {
	what := fmt.Sprintf("%d commands, first %+v", len(cmds), cmds[0])
	w.both(what, func(s *twin) (any, error) {
		got, err := s.db.Operate(w.Context(), space, cmds...)
		var list []string
		for i := range got {
			if got[i].Err == nil {
				w.done++
			}
			list = append(list, fmt.Sprintf("%+v", got[i]))
		}
		return list, err
	})
	w.same(what)
}

// The set verbs account for each table with rows of tasks: a delete erases them, or they keep a
// task out of a set, as in the single-task verbs.
func TestVerbsBySets_KnowAllTables(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(`
		weaver_tasks weaver_attempts weaver_decisions weaver_steps weaver_checkpoints weaver_signals weaver_payloads weaver_events weaver_logs
		weaver_task_labels weaver_outbox_events weaver_timers weaver_audit
		weaver_task_dependencies weaver_artifacts weaver_drafts weaver_paused_tasks weaver_chores
		weaver_conc_waiters weaver_claims weaver_blobs weaver_expiries weaver_feed
		weaver_outbox_orders`) // orders outlive their tasks: a task that is gone counts as ended
	for _, table := range strings.Split(string(schema), "CREATE TABLE ")[1:] {
		name, rest, _ := strings.Cut(table, " ")
		columns, _, _ := strings.Cut(rest, ";")
		if ofTasks := strings.Contains(columns, "task_id") || strings.Contains(columns, "subject") || strings.Contains(columns, "target"); ofTasks != slices.Contains(known, name) {
			t.Errorf("%s has rows of tasks: %v; say in sqlBesideAny and the like, or in sqlDeleteSet, what verbs by sets do about them", name, ofTasks)
		}
	}
}
