package sqlstore

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Bulk is a Database with statements of its own for what happens alike to many tasks,
// each for any number of them. The others write chunks.
type Bulk interface {
	BulkOps
	BulkVerbs

	// InlineMax is how long a text may be to stay on its task's row.
	InlineMax() int
	// InsertAlike stores new tasks with their dispatch rows; those that are stored
	// already stay as they are.
	InsertAlike(t *Tx, a *Alike, rows []AlikeTask) error
	// ClaimLane looks at the n first due rows of a lane, from its Bound on, that no other
	// transaction has locked. It leases the tasks of these that are plain, of a schema
	// that the worker reads, and never were leased, and deletes their dispatch rows if
	// these are all that it looked at: otherwise the caller undoes it. The statement
	// answers with a row for all that it looked at (their task_id and available_at, 24 bytes
	// each, and seven columns of no meaning), and then with the tasks (task_id, freshColumns).
	ClaimLane(t *Tx, l *ClaimLease, version int, s *lane.State, schema, n int) *sqlstmt.Stmt
	// LockTasks reads tasks (TaskSelect), and lets no other transaction change them.
	LockTasks(t *Tx, ids []task.ID) *sqlstmt.Stmt
	// ReadSteps reads the steps of tasks (StepSelect), those of each task as sqlSteps orders them.
	ReadSteps(t *Tx, ids []task.ID) *sqlstmt.Stmt
	// ClaimTasks leases tasks that have no lease and still have the epochs with which they
	// were read, and deletes their dispatch rows: what sqlClaimTask does to one. They were
	// started by one version of the code. It returns how many it leased.
	ClaimTasks(t *Tx, l *ClaimLease, version int, rows []ClaimTask) (int, error)
	// Succeed ends plain first attempts of a claim well, and writes the rows of the
	// attempts: PlainAttempt of the ends and their outputs are given. It returns those that
	// the guard accepted; nil: all.
	Succeed(t *Tx, lease *task.LeaseID, c *Claim, ends []End) (accepted map[task.ID]bool, err error)
	// Guard passes the guard of attempts that are to end, each of another task, and writes
	// their last progress. The statement answers with the rows of the tasks that it
	// accepted (LeaseColumns).
	Guard(t *Tx, ends []*store.Finish) *sqlstmt.Stmt
	// SucceedEach is Guard for good ends with outputs that are not long, and writes the rows
	// of the tasks, as rules.ResolveFinish says of success. In the rows that it answers with
	// the leases have ended.
	SucceedEach(t *Tx, ends []*store.Finish) *sqlstmt.Stmt
	// End writes ends whose guards passed: of each task its row, that of the attempt,
	// and that of the decision.
	End(t *Tx, ends []End) error
	// Dispatch writes fresh dispatch rows.
	Dispatch(t *Tx, rows []store.DispatchRow) error
	// Beat extends leases to an instant. A row that somebody has locked is not waited
	// for: the answer is to ask again, unless the lease is gone.
	Beat(t *Tx, leases []task.Lease, until int64) ([]store.Beat, error)
	// InsertSteps passes the guard of first attempts of a claim, none of which was
	// asked to cancel, and inserts one completed step of each. It returns how many.
	InsertSteps(t *Tx, lease *task.LeaseID, steps []*task.Step) (int, error)
}

// Alike is what new tasks have in common that are stored by one statement.
type Alike struct {
	Varied bool // Options is not given: each row says its own, and its key, labels and needs

	Type, Queue, State, Waiting, Options, Key string
	Priority, ReadyAt, Available              int64 // ReadyAt: 0 is none
	SchemaVersion, MaxAttempts, MaxRepairs    int64
	Depth, Limits                             int64
	Job, Parent                               task.ID
	Deadline                                  int64 // 0: none
	Plain, Needed, AllowFailure, Waits        bool  // Waits: they have no dispatch row
	Long                                      bool  // their inputs are in weaver_payloads
}

// AlikeTask is one of them.
type AlikeTask struct {
	ID           task.ID
	Input        json.RawMessage
	Options, Key string // Key: of idempotency; "": none
	Labels       map[string]string
	Needs        []task.Edge
	IfFailed     int // of these of the kind failed; rules.NoIfFailed: none

	taken func() error // what to do when the key is taken; nil: it has none
}

// ClaimLease is what the leases of a claim have in common.
type ClaimLease struct {
	ID      task.LeaseID
	Name    string // of the worker
	Expires int64
}

// ClaimTask is a task that is about to be leased.
type ClaimTask struct {
	ID    task.ID
	Epoch int64 // before
}

// alikes are new tasks that are not stored yet, in the order of their kinds.
type alikes struct {
	of    map[Alike]int
	kinds []Alike
	rows  [][]AlikeTask
	last  int // in kinds: of the row before, mostly that of the next one
}

// put adds a row; left is how many may follow it.
func (a *alikes) put(kind *Alike, row AlikeTask, left int) {
	if len(a.kinds) > 0 && a.kinds[a.last] == *kind {
		a.rows[a.last] = append(a.rows[a.last], row)
		return
	}
	i, ok := a.of[*kind]
	if !ok {
		if a.of == nil {
			a.of = make(map[Alike]int)
		}
		i = len(a.kinds)
		a.of[*kind] = i
		a.kinds, a.rows = append(a.kinds, *kind), append(a.rows, nil)
		if i == 0 { // nearly always the only one
			a.rows[i] = make([]AlikeTask, 0, 1+left)
		}
	}
	a.last = i
	a.rows[i] = append(a.rows[i], row)
}

// Alikes are new tasks of a namespace, by what they have in common.
type Alikes struct{ alikes }

// Immediate puts the tasks of a submission to those that are stored together, if all of
// them can be, and nothing about them but their time depends on when that is, or on what
// is stored.
func (a *Alikes) Immediate(c *sqlstmt.Cache, inlineMax int, sub *store.Submission) (bool, error) {
	if sub.Job != nil {
		return false, nil
	}
	for i := range sub.Tasks {
		if n := &sub.Tasks[i]; !immediate(n) || !alike(n, inlineMax) {
			return false, nil
		}
	}
	var in insertion
	for i := range sub.Tasks {
		n := &sub.Tasks[i]
		options, err := c.PackOptions(n)
		if err != nil {
			return false, err
		}
		kind := Alike{State: string(task.Ready), Plain: in.plain(n, time.Time{})}
		a.put(&kind, kind.describe(n, options, false), len(sub.Tasks)-i-1)
	}
	return true, nil
}

// Each calls fn with each kind of tasks.
func (a *Alikes) Each(fn func(kind *Alike, rows []AlikeTask) error) error {
	for i := range a.kinds {
		if err := fn(&a.kinds[i], a.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// describe sets what a task itself says, and returns what it has of its own. One that is
// stored alone counts as varied.
func (a *Alike) describe(n *task.New, options string, alone bool) AlikeTask {
	row := AlikeTask{ID: n.ID, Input: n.Input}
	if a.Long {
		row.Input = nil
	}
	a.Varied = alone || n.Node != "" || n.IdempotencyKey != "" || a.Deadline != 0 || len(n.Labels)+len(n.Metadata)+len(n.Redact)+len(n.Needs) > 0
	if a.Varied {
		row.Options, row.Key, row.Labels = options, n.IdempotencyKey, n.Labels
		row.Needs, row.IfFailed = n.Needs, rules.FirstWaits(n.Needs).IfFailed
	} else {
		a.Options = options
	}
	a.Type, a.Queue, a.Priority, a.Key = n.Type, n.Queue, int64(n.Priority), n.ConcurrencyKey
	a.SchemaVersion, a.MaxAttempts, a.MaxRepairs = int64(n.SchemaVersion), int64(n.MaxAttempts), int64(n.MaxRepairs)
	a.AllowFailure = n.AllowFailure
	return row
}

// flush stores the new tasks that were put together.
func (t *Tx) flush() error {
	put := t.alike
	t.alike = alikes{}
	var keyed []task.ID
	for i := range put.kinds {
		if err := t.bulk.InsertAlike(t, &put.kinds[i], put.rows[i]); err != nil {
			return err
		}
		for j := range put.rows[i] {
			if r := &put.rows[i][j]; r.taken != nil {
				keyed = append(keyed, r.ID)
			}
		}
	}
	if len(keyed) == 0 {
		return nil
	}
	stored, err := t.existingOf(keyed)
	if err != nil {
		return err
	}
	for i := range put.kinds {
		for j := range put.rows[i] {
			if r := &put.rows[i][j]; r.taken != nil && !stored[r.ID] {
				if err := r.taken(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var sqlStored = newIDSQL(func(in string) string {
	return `SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND task_id ` + in
})

// existingOf returns which of the tasks there are.
func (v *View) existingOf(ids []task.ID) (map[task.ID]bool, error) {
	there := make(map[task.ID]bool, len(ids))
	err := v.byIDs(sqlStored, ids, func(st *sqlstmt.Stmt, _ []task.ID) error {
		for st.Next() {
			there[st.ColID(0)] = true
		}
		return st.Done()
	})
	return there, err
}

// insertAll writes the steps of a batch in one statement for each claim.
func (r *recording) insertAll(one func(plainStep) error) error {
	t := r.tx
	for _, lease := range r.steps.order {
		rows := r.steps.rows[lease]
		seen := make(map[task.ID]bool, len(rows))
		steps, rest := make([]*task.Step, 0, len(rows)), rows[len(rows):]
		first := rows[:0:0]
		for _, s := range rows {
			if id := s.rec.Lease.Task; seen[id] {
				rest = append(rest, s)
			} else {
				seen[id] = true
				s.store(t)
				first, steps = append(first, s), append(steps, &s.got.Step)
			}
		}
		err := t.undoable(func() error {
			n, err := t.bulk.InsertSteps(t, &lease, steps)
			if err == nil && n != len(steps) {
				err = errUndo
			}
			return err
		}, func() error {
			rest = append(first, rest...)
			return nil
		})
		for i := 0; err == nil && i < len(rest); i++ {
			err = one(rest[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PlainSteps reports whether records are values of steps of first attempts, and nothing
// else, each of another task, all with leases of one claim.
func PlainSteps(recs []store.Record) bool {
	for i := range recs {
		rec := &recs[i]
		if !chunkableStep(rec) || len(rec.Events) > 0 || rec.Step.Cost != 0 || rules.CheckRecord(rec) != nil {
			return false
		}
		if l, first := &rec.Lease, &recs[0].Lease; l.ID != first.ID || l.Generation != first.Generation {
			return false
		}
		for j := range i {
			if recs[j].Lease.Task == rec.Lease.Task {
				return false
			}
		}
	}
	return len(recs) > 0
}
