package soak_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// A visit is a transaction of the user in a process of the storm. It writes a row of the user and enqueues a task,
// stays open for a while, and commits or rolls back. Processes with visits make several at a time, in workers
// concurrently with the engine.

// visitors is the number of concurrent visits in a process.
const visitors = 3

// rollsBack reports whether the n-th visit of a visitor is rolled back.
func rollsBack(n int) bool { return n%2 == 1 }

// The results in the log of visits.
const (
	visitCommitted  = "committed"
	visitRolledBack = "rolled-back"
)

// visit is a line of the log of visits, written after the end of its transaction.
type visit struct {
	how    string
	token  string
	task   string
	waited time.Duration // in BeginTx
}

// visitRow is the user's row of a visit.
type visitRow struct{ token, task string }

func visitsPath(dir string) string { return filepath.Join(dir, "visits") }

// visits makes the visits of one process.
type visits struct {
	db     *sqlite.DB
	client *weaver.Client
	file   *os.File
	life   int
	each   int           // visits per visitor
	pause  time.Duration // maximum time that a visit is open
}

func newVisits(o childConfig, db *sqlite.DB) (*visits, error) {
	v := &visits{db: db, life: o.Life, each: o.Visits, pause: o.Pause}
	var err error
	if v.client, err = weaver.NewClient(db, weaver.ClientConfig{Logger: stderrLog()}); err != nil {
		return nil, err
	}
	v.file, err = os.OpenFile(visitsPath(o.Dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return v, err
}

// run makes all visits until ctx ends. A visit in progress completes.
func (v *visits) run(ctx context.Context) error {
	errs := make([]error, visitors)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := 0; n < v.each && errs[i] == nil && pause(ctx, v.pause/4) == nil; n++ {
				errs[i] = v.visit(context.WithoutCancel(ctx), fmt.Sprintf("%d-%d-%d", v.life, i, n), n)
			}
			if errs[i] != nil {
				stderrLog().Error("a transaction of the user failed", "err", errs[i]) // at once, as the process may be killed before its end
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, v.file.Close())...)
}

const sqlVisit = `INSERT INTO visits (token, task) VALUES (?, ?)`

// visit makes one visit with its own token. One in four stays open for long.
func (v *visits) visit(ctx context.Context, token string, n int) (err error) {
	began := time.Now()
	tx, err := v.db.DB().BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("visit %s: BeginTx after %v: %w", token, time.Since(began), err)
	}
	said := visit{how: visitCommitted, token: token, waited: time.Since(began)}
	defer tx.Rollback()
	if said.task, err = v.write(ctx, tx, token); err != nil {
		return fmt.Errorf("visit %s: %w", token, err)
	}
	if rand.N(4) == 0 {
		if err := pause(ctx, v.pause); err != nil {
			return err
		}
	}
	end := tx.Commit
	if rollsBack(n) {
		said.how, end = visitRolledBack, tx.Rollback
	}
	if err := end(); err != nil {
		return fmt.Errorf("visit %s: %w", token, err)
	}
	_, err = fmt.Fprintln(v.file, said)
	return err
}

// write enqueues the visit's task and writes its row, in either order.
func (v *visits) write(ctx context.Context, tx *sql.Tx, token string) (id string, err error) {
	in := order{Kind: "visit", Token: token}
	e, err := workType.Enqueue(ctx, v.client.InTx(sqlite.Tx(tx)), in, weaver.Queue(fmt.Sprint("queue-", rand.N(3))))
	if err != nil {
		return "", err
	}
	_, err = tx.ExecContext(ctx, sqlVisit, token, e.ID().String())
	return e.ID().String(), err
}

func (v visit) String() string {
	return fmt.Sprintf("%s %s %s %d", v.how, v.token, v.task, v.waited)
}

func readVisits(dir string) (all []visit, err error) {
	err = readLines(visitsPath(dir), func(text string) error {
		f := strings.Split(text, " ")
		if len(f) != 4 {
			return fmt.Errorf("%q has %d words, want 4", text, len(f))
		}
		ns, err := strconv.ParseInt(f[3], 10, 64)
		all = append(all, visit{f[0], f[1], f[2], time.Duration(ns)})
		return err
	})
	return all, err
}

// readVisitRows reads the user's rows.
func readVisitRows(ctx context.Context, db *sql.DB) (all []visitRow, err error) {
	rows, err := db.QueryContext(ctx, "SELECT token, task FROM visits")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r visitRow
		if err := rows.Scan(&r.token, &r.task); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// visited checks that committed visits exist and rolled back visits do not. For visits with an unknown end, the row
// exists if and only if the task does.
func (e *evidence) visited(all []*records) {
	tasks := make(map[string][]string) // by token
	for _, r := range all {
		if r.in.Token != "" {
			tasks[r.in.Token] = append(tasks[r.in.Token], r.ID.String())
		}
	}
	rows := make(map[string][]string)
	for _, r := range e.visitRows {
		rows[r.token] = append(rows[r.token], r.task)
	}
	for token, ids := range rows {
		if got := tasks[token]; len(ids) != 1 || len(got) != 1 || got[0] != ids[0] {
			e.report("visit", "visit %s left the rows of tasks %v, and its tasks are %v", token, ids, got)
		}
	}
	for token, ids := range tasks {
		if len(rows[token]) == 0 {
			e.report("visit", "visit %s left the tasks %v and no row", token, ids)
		}
	}
	for _, v := range e.visits {
		switch got := tasks[v.token]; {
		case v.how == visitCommitted && (len(got) != 1 || got[0] != v.task):
			e.report("visit", "visit %s was committed with task %s, and its tasks are %v", v.token, v.task, got)
		case v.how == visitRolledBack && len(got)+len(rows[v.token]) > 0:
			e.report("visit", "visit %s was rolled back, and the tasks %v and rows %v are there", v.token, got, rows[v.token])
		}
	}
}

// visitFigures reports the number of visits and their waiting times.
func (e *evidence) visitFigures() string {
	ends := map[string]int{}
	var waits []time.Duration
	for _, v := range e.visits {
		ends[v.how]++
		waits = append(waits, v.waited)
	}
	return fmt.Sprintf("transactions of the user: %s, of unknown end there %d; they waited for their turn: %s",
		counted(ends), len(e.visitRows)-ends[visitCommitted], spread(waits))
}
