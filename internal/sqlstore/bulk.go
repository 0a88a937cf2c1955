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

// Bulk is a Database with its own set-based statements for tasks that change in the same way.
// Each takes any number of tasks. Other databases write chunks.
type Bulk interface {
	BulkOps
	BulkVerbs
	BulkOrders

	// InlineMax is the maximum length of a text on its task's row.
	InlineMax() int
	// InsertAlike stores new tasks with their dispatch rows. It leaves tasks that are stored
	// already unchanged.
	InsertAlike(t *Tx, a *Alike, rows []AlikeTask) error
	// ClaimLane reads the first n due rows of a lane, from its Bound on, that no other
	// transaction has locked. It leases the tasks that are plain, have a schema that the
	// worker reads, and were never leased. If it could lease all of them, it deletes their
	// dispatch rows; otherwise the caller rolls it back. With leave it reads no row that
	// store.DispatchRow.Leave leaves. The statement first returns one row
	// for all rows read (task_id and available_at, 24 bytes each). Its third column is
	// the number of deleted rows; the others are unused.
	// Then it returns the tasks (task_id, freshColumns).
	ClaimLane(t *Tx, l *ClaimLease, version int, s *lane.State, schema, n int, leave bool) *sqlstmt.Stmt
	// DueOfLanes reads the first n due rows of each of many lanes, and locks them, like sqlDueOfLane for
	// one lane, or with leave like sqlLeaveSent, but of any schema. The statement returns them in any
	// order (HintedSelect), each with the place of its lane in the list, from 1 on.
	DueOfLanes(t *Tx, lanes []DueLane, n int, leave bool) *sqlstmt.Stmt
	// Hinted reads the dispatch rows of tasks as o, with the tasks as t (HintedSelect), and locks the
	// rows. It skips those that another transaction has locked.
	Hinted(t *Tx, ids []task.ID) *sqlstmt.Stmt
	// ForgetRates is sqlForgetRates.
	ForgetRates(t *Tx, n int) error
	// LockSent is Hinted for the columns task_id and sent_until.
	LockSent(t *Tx, ids []task.ID) *sqlstmt.Stmt
	// MarkSent is sqlMarkSent, and SetSent sqlSetSent, for rows locked by LockSent.
	MarkSent(t *Tx, ids []task.ID, until int64) error
	SetSent(t *Tx, ids []task.ID, until int64, lastError string) error
	// LockTasks reads tasks (TaskSelect) and locks them against other transactions.
	LockTasks(t *Tx, ids []task.ID) *sqlstmt.Stmt
	// ReadSteps reads the steps of tasks (StepSelect), sorted within each task as in sqlSteps.
	ReadSteps(t *Tx, ids []task.ID) *sqlstmt.Stmt
	// ClaimTasks leases unleased tasks that still have the epochs that were read, and deletes
	// their dispatch rows, like sqlClaimTask for one task. All were started by the same
	// version of the code. It returns the number of leased tasks.
	ClaimTasks(t *Tx, l *ClaimLease, version int, rows []ClaimTask) (int, error)
	// Succeed ends plain first attempts of a claim with success and writes the attempts' rows.
	// The caller sets PlainAttempt of the ends and their outputs. Succeed returns the tasks
	// that passed the guard; nil: all.
	Succeed(t *Tx, lease *task.LeaseID, c *Claim, ends []End) (accepted map[task.ID]bool, err error)
	// Guard runs the guard for ending attempts, each of another task, and writes their last
	// progress. The statement returns the rows of the accepted tasks (LeaseColumns).
	Guard(t *Tx, ends []*store.Finish) *sqlstmt.Stmt
	// SucceedEach is Guard for successful ends with short outputs. It also writes the tasks'
	// rows, as rules.ResolveFinish decides for a success. In the returned rows the leases have
	// ended.
	SucceedEach(t *Tx, ends []*store.Finish) *sqlstmt.Stmt
	// End writes ends whose guards passed: the row of each task, of its attempt and of its
	// decision.
	End(t *Tx, ends []End) error
	// Dispatch writes new dispatch rows.
	Dispatch(t *Tx, rows []store.DispatchRow) error
	// Beat extends leases to an instant. It does not wait for locked rows: the answer for a
	// locked row is to ask again, unless the lease is lost.
	Beat(t *Tx, leases []task.Lease, until int64) ([]store.Beat, error)
	// InsertSteps runs the guard for first attempts of a claim without a cancel request, and
	// inserts one completed step for each. It returns the number of inserted steps.
	InsertSteps(t *Tx, lease *task.LeaseID, steps []*task.Step) (int, error)
}

// Alike holds the columns shared by tasks inserted together.
type Alike struct {
	Varied bool // each row has its own Options, key, labels and needs; Options is not set here

	Type, Queue, State, Waiting, Options, Key string
	Priority, ReadyAt, Available              int64 // ReadyAt: 0 if unset
	SchemaVersion, MaxAttempts, MaxRepairs    int64
	Depth, Limits                             int64
	Job, Parent                               task.ID
	Deadline                                  int64 // 0: no deadline
	Plain, Needed, AllowFailure, Waits        bool  // Waits: they have no dispatch row
	Long                                      bool  // their inputs are in weaver_payloads
}

// AlikeTask holds the columns of one task inserted with an [Alike].
type AlikeTask struct {
	ID           task.ID
	Input        json.RawMessage
	Options, Key string // Key: the idempotency key, or ""
	Group        string // of its lane; "" unless the task is varied
	Labels       map[string]string
	Needs        []task.Edge
	IfFailed     int // edges of the kind failed among them, or rules.NoIfFailed

	taken func() error // called when the key is taken; nil without a key
}

// ClaimLease holds the shared columns of a claim's leases.
type ClaimLease struct {
	ID      task.LeaseID
	Name    string // of the worker
	Expires int64
}

// DueLane is a lane whose due rows are read from a position on.
type DueLane struct {
	lane.Key
	After int64  // due time of the last row read before
	Last  []byte // its ID
}

// ClaimTask is a task to be leased.
type ClaimTask struct {
	ID    task.ID
	Epoch int64 // before the lease
}

// alikes holds new, unstored tasks, grouped by kind.
type alikes struct {
	of    map[Alike]int
	kinds []Alike
	rows  [][]AlikeTask
	last  int // index in kinds of the last added row, usually also of the next row
}

// put adds a row. left is the maximum number of rows that may follow.
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
		if i == 0 { // usually the only kind
			a.rows[i] = make([]AlikeTask, 0, 1+left)
		}
	}
	a.last = i
	a.rows[i] = append(a.rows[i], row)
}

// Alikes holds new tasks of a namespace, grouped by kind.
type Alikes struct{ alikes }

// Immediate adds the tasks of a submission if all of them can be inserted together. Apart from
// timestamps, nothing about them may depend on the time of the insert or on stored rows. It
// reports whether it added them.
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

// Each calls fn once for each kind, with the tasks of that kind.
func (a *Alikes) Each(fn func(kind *Alike, rows []AlikeTask) error) error {
	for i := range a.kinds {
		if err := fn(&a.kinds[i], a.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// describe sets the shared columns from a task and returns the task's own columns. A task that
// is stored alone counts as varied.
func (a *Alike) describe(n *task.New, options string, alone bool) AlikeTask {
	row := AlikeTask{ID: n.ID, Input: n.Input, Group: store.LaneGroup(n.Options, n.Labels)}
	if a.Long {
		row.Input = nil
	}
	a.Varied = alone || row.Group != "" || n.Node != "" || n.IdempotencyKey != "" || a.Deadline != 0 || len(n.Labels)+len(n.Metadata)+len(n.Redact)+len(n.Needs) > 0
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

// flush inserts the collected new tasks.
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

// existingOf returns the set of tasks that exist.
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

// insertAll writes the steps of a batch, with one statement for each claim.
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

// PlainSteps reports whether every record is only the value of a step of a first attempt. Each
// record must be of another task, and all leases of one claim.
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
