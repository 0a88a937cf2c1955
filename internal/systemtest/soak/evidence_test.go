package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// evidence is the data left by the processes of a storm.
type evidence struct {
	size      stormSize
	dir       string
	snap      *store.Snapshot
	integrity string // result of PRAGMA integrity_check
	log       []line
	acks      []ack
	effects   []effect
	orders    []orderRow
	visits    []visit
	visitRows []visitRow
	pids      map[int]int // by life; nil if the lives were not processes
	calls     map[int][]string
	stderr    map[int]string
	lockFiles int
	workers   int // rows of workers in the store

	found []string // violations by check
}

// effect is a row written by a StepTx.
type effect struct {
	task, step    string
	attempt, life int
}

// orderRow is a row written by the producer in the transaction of an enqueue.
type orderRow struct {
	n    int
	task string
}

// evidence collects the data after all processes have ended.
func (s *storm) evidence() *evidence {
	s.Helper()
	e, err := collect(context.Background(), s.dir, s.size, s.pids, s.lives)
	if err != nil {
		s.Fatalf("collect the evidence: %v", err)
	}
	return e
}

func collect(ctx context.Context, dir string, size stormSize, pids map[int]int, lives int) (e *evidence, err error) {
	e = &evidence{size: size, dir: dir, pids: pids, calls: make(map[int][]string), stderr: make(map[int]string)}
	if e.log, err = readStepLog(dir); err != nil {
		return nil, err
	}
	if e.acks, err = readAcks(dir); err != nil {
		return nil, err
	}
	if e.visits, err = readVisits(dir); err != nil {
		return nil, err
	}
	for life := range lives + 1 {
		e.stderr[life] = stderrOf(dir, life)
		if e.calls[life], err = readGauge(dir, life); err != nil {
			return nil, err
		}
	}
	locks, err := filepath.Glob(databasePath(dir) + ".workers/*")
	if err != nil {
		return nil, err
	}
	e.lockFiles = len(locks)
	db, err := sqlite.Open(ctx, databasePath(dir))
	if err != nil {
		return nil, err
	}
	return e, errors.Join(e.read(ctx, db), db.Close())
}

func (e *evidence) read(ctx context.Context, db *sqlite.DB) (err error) {
	if e.snap, err = db.Snapshot(ctx, weaver.DefaultNamespace); err != nil {
		return err
	}
	if err := db.DB().QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&e.integrity); err != nil {
		return err
	}
	if err := db.DB().QueryRowContext(ctx, "SELECT count(*) FROM weaver_workers").Scan(&e.workers); err != nil {
		return err
	}
	if e.visitRows, err = readVisitRows(ctx, db.DB()); err != nil {
		return err
	}
	rows, err := db.DB().QueryContext(ctx, "SELECT task, step, attempt, life FROM effects")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var f effect
		if err := rows.Scan(&f.task, &f.step, &f.attempt, &f.life); err != nil {
			return err
		}
		e.effects = append(e.effects, f)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rows, err = db.DB().QueryContext(ctx, "SELECT n, task FROM orders")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var o orderRow
		if err := rows.Scan(&o.n, &o.task); err != nil {
			return err
		}
		e.orders = append(e.orders, o)
	}
	return rows.Err()
}

func stderrOf(dir string, life int) string {
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("stderr-%d", life)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(text)
}

// stderrTails returns the end of each process's stderr.
func (e *evidence) stderrTails() string {
	var b strings.Builder
	for life := range len(e.stderr) {
		if text := e.stderr[life]; text != "" {
			fmt.Fprintf(&b, "life %d: %s\n", life, text[max(0, len(text)-2000):])
		}
	}
	return b.String()
}

// records holds a task, its rows, and the order in its input.
type records struct {
	*task.Task
	in       order
	out      receipt
	attempts []task.Attempt
	steps    map[string][]task.Step // by name: failed tries and completed ones
	effects  map[string][]effect    // by step
	lines    []line
}

// sorted returns all tasks with their records, by ID.
func (e *evidence) sorted() (all []*records) {
	byID := make(map[string]*records, len(e.snap.Tasks))
	for i := range e.snap.Tasks {
		r := &records{Task: &e.snap.Tasks[i], steps: make(map[string][]task.Step), effects: make(map[string][]effect)}
		byID[r.ID.String()] = r
		all = append(all, r)
		if err := json.Unmarshal(r.Input, &r.in); err != nil {
			e.report("input", "task %s: %v", r.ID, err)
		}
		if len(r.Output) == 0 {
			continue // the task did not succeed, which is reported elsewhere
		}
		if err := json.Unmarshal(r.Output, &r.out); err != nil {
			e.report("output", "task %s: %v", r.ID, err)
		}
	}
	of := func(what, id string) *records {
		if byID[id] == nil {
			e.report("unknown", "%s is of task %s, which the store does not know", what, id)
			return nil
		}
		return byID[id]
	}
	for _, a := range e.snap.Attempts {
		if r := of("an attempt", a.TaskID.String()); r != nil {
			r.attempts = append(r.attempts, a)
		}
	}
	for _, st := range e.snap.Steps {
		if r := of("a step", st.TaskID.String()); r != nil {
			r.steps[st.Name] = append(r.steps[st.Name], st)
		}
	}
	for _, f := range e.effects {
		if r := of("a row of the user", f.task); r != nil {
			r.effects[f.step] = append(r.effects[f.step], f)
		}
	}
	for _, l := range e.log {
		if l.task == "-" {
			continue
		}
		if r := of("a line of the log", l.task); r != nil {
			r.lines = append(r.lines, l)
		}
	}
	return all
}

// report adds a violation. The kind comes first, so that the tests with false evidence can select it.
func (e *evidence) report(kind, format string, args ...any) {
	e.found = append(e.found, kind+": "+fmt.Sprintf(format, args...))
}

// check returns every violation, sorted.
func (e *evidence) check() []string {
	e.found = nil
	if e.integrity != "ok" {
		e.report("integrity", "PRAGMA integrity_check says %s", e.integrity)
	}
	for _, v := range store.Check(e.snap) {
		e.report("doctor", "%s", v)
	}
	all := e.sorted()
	e.acknowledged(all)
	e.complete(all)
	e.visited(all)
	e.unserved(all)
	e.children(all)
	e.job(all)
	for _, r := range all {
		if r.Type == unservedType.Name() {
			continue
		}
		e.ended(r)
		e.recorded(r)
		e.started(r)
		e.kept(r)
		e.tried(r)
	}
	e.exclusive()
	e.lost()
	e.loggedErrors()
	slices.Sort(e.found)
	return e.found
}
