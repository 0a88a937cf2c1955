package sqlstore

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/task"
)

// Most removed tasks share nothing with other tasks: they have attempts, steps and decisions.
// They are removed in sets. One statement counts the recorded rows of a range of tasks, and
// each table with such rows is deleted from once for each chunk. A task with shared rows
// (edges, blobs), a task that an operator changed, and a task with too many rows are removed
// one by one.

// recordTables have rows of tasks, by an ID column that comes first in a key. Signals and
// pauses are left out: the commands that wrote them are in the audit (sqlAuditedBetween).
var recordTables = []struct {
	rows   string // table and condition
	column string
	erase  chunkSQL // nil: a task with rows here is removed alone
}{
	{rows: "weaver_task_dependencies WHERE ", column: "task_id"},
	{rows: "weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need WHERE ", column: "depends_on_task_id"},
	{rows: "weaver_artifacts WHERE ", column: "task_id"},
	{rows: "weaver_drafts WHERE ", column: "task_id"},
	{rows: "weaver_chores WHERE kind = 'delete_task' AND ", column: "subject"},
	{rows: "weaver_attempts WHERE ", column: "task_id", erase: eraseFrom("weaver_attempts")},
	{rows: "weaver_decisions WHERE ", column: "task_id", erase: eraseFrom("weaver_decisions")},
	{rows: "weaver_steps WHERE ", column: "task_id", erase: eraseFrom("weaver_steps")},
	{rows: "weaver_payloads WHERE ", column: "task_id", erase: eraseFrom("weaver_payloads")},
	{rows: "weaver_checkpoints WHERE ", column: "task_id", erase: eraseFrom("weaver_checkpoints")},
	{rows: "weaver_events WHERE ", column: "task_id", erase: eraseFrom("weaver_events")},
	{rows: "weaver_logs WHERE ", column: "task_id", erase: eraseFrom("weaver_logs")},
	{rows: "weaver_expiries WHERE ", column: "task_id", erase: eraseFrom("weaver_expiries")},
}

func eraseFrom(table string) chunkSQL {
	return newIDSQL(func(in string) string { return `DELETE FROM ` + table + ` WHERE namespace = ?1 AND task_id ` + in })
}

var (
	// sqlRecordsBetween returns the rows of all recordTables for the tasks of a range, at most
	// ?4 of each table.
	sqlRecordsBetween = repeat(len(recordTables), " UNION ALL", func(i int) string {
		return fmt.Sprintf("\nSELECT %d, id FROM (SELECT %s AS id FROM %snamespace = ?1 AND %[2]s >= ?2 AND %[2]s <= ?3 LIMIT ?4) t%[1]d",
			i, recordTables[i].column, recordTables[i].rows)
	})
	// sqlAuditedBetween finds the tasks of a range that operators changed. The audit has their
	// IDs as text, which sorts like the IDs.
	sqlAuditedBetween = `
SELECT target FROM weaver_audit INDEXED BY weaver_audit_by_target WHERE namespace = ?1 AND target >= ?2 AND target <= ?3 LIMIT ?4`
	sqlRetainedTasks = newIDSQL(func(in string) string {
		return `SELECT ` + labelledTaskColumns.List() + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id ` + in
	})
	sqlEraseTasks = eraseFrom("weaver_tasks")

	labelledTaskColumns = append(slices.Clone(retainedTaskColumns), sqlstmt.Col("options_json", func(c *retained, r *sqlstmt.Row, i int) {
		var of task.Task
		r.Options(i, &of)
		c.labels = of.Labels
	}))
)

const (
	// setLook is the number of listed tasks read together. Recorded rows of tasks that the
	// bite then has no room for were read in vain.
	setLook = 100
	// maxRecords is the maximum number of rows read from each table. A range with more rows
	// mostly has tasks that stay.
	maxRecords = 1000
)

// records holds the recorded rows of a range of tasks.
type records struct {
	tasks  map[task.ID]*retained // tasks that can be removed in sets
	rows   map[task.ID]int
	tables []map[task.ID]bool // the tasks with rows, by table
	alone  map[task.ID]bool   // tasks that are removed one by one
	many   bool               // rows beyond the limit were not read
}

// recordsBetween reads the recorded rows of a range of tasks.
func (t *Tx) recordsBetween(first, last *task.ID) (*records, error) {
	of := records{tasks: make(map[task.ID]*retained), rows: make(map[task.ID]int), tables: make([]map[task.ID]bool, len(recordTables)), alone: make(map[task.ID]bool)}
	looked := make([]int, len(recordTables)+1)
	look := func(table int) {
		looked[table]++
		of.many = of.many || looked[table] >= maxRecords
	}
	st := t.stmt(sqlRecordsBetween).Text(1, t.ns).ID(2, first).ID(3, last).Int(4, maxRecords)
	for st.Next() {
		i, id := int(st.ColInt(0)), st.ColID(1)
		look(i)
		if recordTables[i].erase == nil {
			of.alone[id] = true
			continue
		}
		if of.tables[i] == nil {
			of.tables[i] = make(map[task.ID]bool)
		}
		of.tables[i][id] = true
		of.rows[id]++
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	st = t.stmt(sqlAuditedBetween).Text(1, t.ns).Text(2, first.String()).Text(3, last.String()).Int(4, maxRecords)
	for st.Next() {
		look(len(recordTables))
		if id, err := task.ParseID(st.ColText(0)); err == nil {
			of.alone[id] = true
		}
	}
	return &of, st.Done()
}

// independent checks the listed tasks again and returns the ones that can be removed in sets.
// For tasks that only lose values it locks neither rows nor jobs.
func (c *collecting) independent(list []retained) (*records, error) {
	var ids []task.ID
	for i := range list {
		if list[i].goes(c.req, c.at) {
			ids = append(ids, list[i].id)
		}
	}
	if len(ids) == 0 {
		return new(records), nil
	}
	if _, err := c.db.Tasks(c.Tx, ids...); err != nil {
		return nil, err
	}
	of, err := c.recordsBetween(&ids[0], &ids[len(ids)-1])
	if err != nil || of.many {
		return new(records), err
	}
	return of, c.byIDs(sqlRetainedTasks, ids, func(st *sqlstmt.Stmt, _ []task.ID) error {
		some, err := labelledTaskColumns.All(st)
		for i := range some {
			if r := &some[i]; !of.alone[r.id] && r.goes(c.req, c.at) {
				of.tasks[r.id] = r
			}
		}
		return err
	})
}

// nextTasks removes the first tasks of a list that fit in a set, or else handles the first
// task alone. It returns the number of handled tasks.
func (c *collecting) nextTasks(list []retained) (n int, err error) {
	if c.looked == 0 {
		c.looked = min(len(list), setLook)
		if c.of, err = c.independent(list[:c.looked]); err != nil {
			return 0, err
		}
	}
	if n, err = c.set(list[:c.looked]); err == nil && n == 0 {
		n, err = 1, c.one(&list[0].id)
	}
	c.looked -= n
	return n, err
}

// set removes the longest prefix of a list that fits in a set and in the room of the bite.
func (c *collecting) set(list []retained) (int, error) {
	var set []task.ID
	for i := range list {
		r := c.of.tasks[list[i].id]
		if r == nil {
			break
		}
		rows := c.of.rows[r.id] + 1
		if c.room-rows < rules.MaxMoves {
			break
		}
		if err := c.deleteLabelsOf(&r.id, r.labels); err != nil {
			return 0, err
		}
		c.room -= rows
		set = append(set, r.id)
	}
	run := func(st *sqlstmt.Stmt, _ []task.ID) error { return st.Run() }
	for i, table := range recordTables {
		some := slices.DeleteFunc(slices.Clone(set), func(id task.ID) bool { return !c.of.tables[i][id] })
		if err := c.byIDs(table.erase, some, run); err != nil {
			return 0, err
		}
	}
	c.gone = append(c.gone, set...)
	c.res.Tasks += len(set)
	return len(set), c.byIDs(sqlEraseTasks, set, run)
}
