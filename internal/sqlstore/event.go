package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// eventColumns are the columns of the tables of events and of logs.
var eventColumns = sqlstmt.Columns[store.EventRow]{
	sqlstmt.Col("seq", func(e *store.EventRow, r *sqlstmt.Row, i int) { e.Seq = r.Int(i) }),
	sqlstmt.Col("type", func(e *store.EventRow, r *sqlstmt.Row, i int) { e.Type = r.Text(i) }),
	sqlstmt.Col("at", func(e *store.EventRow, r *sqlstmt.Row, i int) { e.At = r.Time(i) }),
	sqlstmt.Col("body", func(e *store.EventRow, r *sqlstmt.Row, i int) { e.Body = r.Bytes(i) }),
}

var (
	sqlEvents = `SELECT ` + eventColumns.List() + ` FROM weaver_events WHERE namespace = ?1 AND task_id = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4`
	sqlLogs   = `SELECT ` + eventColumns.List() + ` FROM weaver_logs WHERE namespace = ?1 AND task_id = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4`
)

// Events implements store.Observe.
func (s *Store) Events(ctx context.Context, ns string, id task.ID, after int64, limit int) (rows []store.EventRow, err error) {
	limit = rules.EventLimit(limit)
	err = s.read(ctx, ns, func(v *View) error {
		events, err := eventColumns.All(v.stmt(sqlEvents).Text(1, v.ns).ID(2, &id).Int(3, after).Int(4, int64(limit)))
		if err != nil {
			return err
		}
		logs, err := eventColumns.All(v.stmt(sqlLogs).Text(1, v.ns).ID(2, &id).Int(3, after).Int(4, int64(limit)))
		for i := range logs {
			logs[i].Log = true
		}
		rows = rules.MergeEvents(events, logs, limit)
		return err
	})
	return rows, err
}

// sqlInsertEvents writes a chunk of rows. Existing rows were written by an earlier try of the
// same report.
var (
	sqlInsertEvents = newChunkSQL(func(n int) string { return insertEvents("weaver_events", n) })
	sqlInsertLogs   = newChunkSQL(func(n int) string { return insertEvents("weaver_logs", n) })
)

func insertEvents(table string, n int) string {
	return `
INSERT INTO ` + table + ` (namespace, task_id, seq, type, at, body)
VALUES ` + repeat(n, ", ", func(i int) string { return "(?1, " + params(2+5*i, 5) + ")" }) + `
ON CONFLICT DO NOTHING`
}

// eventOf is an event row with its task.
type eventOf struct {
	task *task.ID
	row  *store.EventRow
}

// eventRows collects the rows of a batch's accepted reports. They are written after all
// guards, many with one statement, in waves. Each wave writes events before log lines, so that
// a feed keeps the order of each task.
type eventRows struct {
	waves []eventWave
	logs  map[task.ID]int // index of the wave with the task's last log line
}

type eventWave struct{ events, logs []eventOf }

// add collects the rows of a report whose guard passed. Crash after the commit: the report is
// stored with its rows.
func (e *eventRows) add(t *Tx, l *task.Lease, rows []store.EventRow) {
	if len(rows) == 0 {
		return
	}
	at, logged := e.logs[l.Task]
	for i := range rows {
		if logged && !rows[i].Log {
			at++
		}
		if logged = rows[i].Log; at == len(e.waves) {
			e.waves = append(e.waves, eventWave{})
		}
		w, of := &e.waves[at], eventOf{&l.Task, &rows[i]}
		if rows[i].Log {
			w.logs = append(w.logs, of)
		} else {
			w.events = append(w.events, of)
		}
	}
	if logged || at > 0 {
		if e.logs == nil {
			e.logs = make(map[task.ID]int)
		}
		e.logs[l.Task] = at
	}
	t.fx.Notice.Events = append(t.fx.Notice.Events, l.Task)
}

// writeEvents writes the rows of reports that will be accepted, before the attempts end,
// because a feed delivers them in that order. No other transaction changes their tasks
// meanwhile.
func (f *finishing) writeEvents(fins []store.Finish) error {
	t := f.moves.tx
	var events eventRows
	for i := range fins {
		fin := &fins[i]
		if len(fin.Events) == 0 || rules.CheckFinish(fin) != nil {
			continue
		}
		gone, err := t.usable(rules.FinishBlobs(fin))
		if err == nil && gone == nil {
			gone, err = t.Lost(&fin.Lease)
		}
		if err != nil {
			return err
		}
		if gone == nil {
			events.add(t, &fin.Lease, fin.Events)
		}
	}
	return events.write(t)
}

func (e *eventRows) write(t *Tx) error {
	for i := range e.waves {
		if err := e.waves[i].write(t); err != nil {
			return err
		}
	}
	return nil
}

func (w *eventWave) write(t *Tx) error {
	for _, into := range []struct {
		rows []eventOf
		sql  chunkSQL
	}{{w.events, sqlInsertEvents}, {w.logs, sqlInsertLogs}} {
		err := inChunks(into.rows, func(chunk []eventOf) error {
			st := t.stmt(into.sql[len(chunk)]).Text(1, t.ns)
			for i, of := range chunk {
				p := 2 + 5*i
				st.ID(p, of.task).Int(p+1, of.row.Seq).Text(p+2, of.row.Type).Time(p+3, of.row.At).Bytes(p+4, of.row.Body)
			}
			return st.Run()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlDropEvents = `
DELETE FROM weaver_events WHERE namespace = ?1 AND task_id = ?2
  AND seq <= coalesce((SELECT seq FROM weaver_events WHERE namespace = ?1 AND task_id = ?2 ORDER BY seq LIMIT 1 OFFSET ?3), 9223372036854775807)`
	sqlDropLogs = `
DELETE FROM weaver_logs WHERE namespace = ?1 AND task_id = ?2
  AND seq <= coalesce((SELECT seq FROM weaver_logs WHERE namespace = ?1 AND task_id = ?2 ORDER BY seq LIMIT 1 OFFSET ?3), 9223372036854775807)`
)

// dropEvents deletes event rows of a deleted task, up to the limit of a transaction, and
// reports whether rows may remain.
func (t *Tx) dropEvents(id *task.ID) (more bool, err error) {
	for _, sql := range []string{sqlDropEvents, sqlDropLogs} {
		n, err := t.stmt(sql).Text(1, t.ns).ID(2, id).Int(3, int64(rules.MaxMoves/2-1)).Exec()
		if err != nil {
			return false, err
		}
		more = more || n >= rules.MaxMoves/2
	}
	return more, nil
}
