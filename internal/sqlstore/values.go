package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A walk over values reads one table after the other, each by its primary key.
const (
	sqlWalkTasks = `
SELECT task_id, task_type, input, output, progress FROM weaver_tasks WHERE namespace = ?1 AND task_id > ?2 ORDER BY task_id LIMIT ?3`
	sqlWalkPayloads = `
SELECT p.task_id, p.kind, p.data, t.task_type FROM weaver_payloads p CROSS JOIN weaver_tasks t ON t.namespace = p.namespace AND t.task_id = p.task_id
WHERE p.namespace = ?1 AND (p.task_id, p.kind) > (?2, ?4) ORDER BY p.task_id, p.kind LIMIT ?3`
	sqlWalkSteps = `
SELECT task_id, name, attempt_no, try, kind, awaits, value, by_attempt, by_try FROM weaver_steps
WHERE namespace = ?1 AND (task_id, name, attempt_no, try) > (?2, ?4, ?5, ?6) ORDER BY task_id, name, attempt_no, try LIMIT ?3`
	sqlWalkSignals = `
SELECT task_id, seq, name, payload FROM weaver_signals WHERE namespace = ?1 AND (task_id, seq) > (?2, ?4) ORDER BY task_id, seq LIMIT ?3`
	sqlWalkCheckpoints = `
SELECT task_id, name, value FROM weaver_checkpoints WHERE namespace = ?1 AND (task_id, name) > (?2, ?4) ORDER BY task_id, name LIMIT ?3`
	sqlWalkEvents = `
SELECT task_id, seq, type, body FROM weaver_events WHERE namespace = ?1 AND (task_id, seq) > (?2, ?4) ORDER BY task_id, seq LIMIT ?3`
	sqlWalkLogs = `
SELECT task_id, seq, type, body FROM weaver_logs WHERE namespace = ?1 AND (task_id, seq) > (?2, ?4) ORDER BY task_id, seq LIMIT ?3`
	sqlWalkLinks = `
SELECT task_id, kind, artifact_id, name, link FROM weaver_artifacts
WHERE namespace = ?1 AND (task_id, kind, artifact_id) > (?2, ?4, ?5) ORDER BY task_id, kind, artifact_id LIMIT ?3`
	sqlWalkBlobs = `
SELECT blob_id, sha256, size_bytes, state FROM weaver_blobs WHERE namespace = ?1 AND blob_id > ?2 ORDER BY blob_id LIMIT ?3`
	sqlWalkSchedules = `
SELECT name, work FROM weaver_schedules WHERE namespace = ?1 AND name > ?2 ORDER BY name LIMIT ?3`
)

var sqlWalkOrders = `
SELECT o.id, o.idempotency_key, o.order_request_json, l.response_payload_json ` + fromOrders + `AND o.id > ?2 ORDER BY o.id LIMIT ?3`

// walkKey is the rest of a row's key after the ID of its task.
type walkKey uint8

const (
	keyTask walkKey = iota // no further columns
	keyName
	keyNumber
	keyTry    // name, number and try
	keyNoTask // the number of a row, and no task
	keyNoID   // a name, and no task
	keyRef    // the kind and the ID of a reference, joined in the cursor's name (bindRef)
)

// walks are the stages. Each reads one row: its position as a cursor, and its values.
var walks = []struct {
	sql string
	key walkKey
	row func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue
}{
	{sqlWalkDrafts, keyNumber, walkDrafts},
	{sqlWalkTasks, keyTask, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		of := st.ColText(1)
		return []store.StoredValue{
			walked(store.ValueInput, at, of, st.ColBytes(2)),
			walked(store.ValueOutput, at, of, st.ColBytes(3)),
			walked(store.ValueProgress, at, of, st.ColBytes(4)),
		}
	}},
	{sqlWalkPayloads, keyName, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		at.Name = st.ColText(1)
		if at.Name == kindFor { // the name of a question
			return nil
		}
		v := walked(store.ValueKind(at.Name), at, st.ColText(3), st.ColBytes(2))
		v.Name = ""
		return []store.StoredValue{v}
	}},
	{sqlWalkSteps, keyTry, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		at.Name, at.No, at.Try = st.ColText(1), st.ColInt(2), st.ColInt(3)
		v := walked(store.ValueStep, at, st.ColText(5), st.ColBytes(6))
		v.StepKind, v.No, v.Try = task.StepKind(st.ColName(4)), st.ColInt(7), st.ColInt(8) // these are not in the key of a completed step
		return []store.StoredValue{v}
	}},
	{sqlWalkSignals, keyNumber, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		at.No = st.ColInt(1)
		return []store.StoredValue{walked(store.ValueSignal, at, st.ColText(2), st.ColBytes(3))}
	}},
	{sqlWalkCheckpoints, keyName, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		at.Name = st.ColText(1)
		return []store.StoredValue{walked(store.ValueCheckpoint, at, "", st.ColBytes(2))}
	}},
	{sqlWalkEvents, keyNumber, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		at.No = st.ColInt(1)
		return []store.StoredValue{walked(store.ValueEvent, at, st.ColText(2), st.ColBytes(3))}
	}},
	{sqlWalkLogs, keyNumber, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		at.No = st.ColInt(1)
		return []store.StoredValue{walked(store.ValueLog, at, st.ColText(2), st.ColBytes(3))}
	}},
	{sqlWalkLinks, keyRef, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		id := st.ColID(2)
		v := walked(store.ValueLink, at, st.ColText(3), st.ColBytes(4))
		v.Name, at.Name = id.String(), st.ColText(1)+"/"+id.String()
		return []store.StoredValue{v}
	}},
	{sqlWalkBlobs, keyTask, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		if task.BlobState(st.ColName(3)) != task.BlobLive {
			return nil
		}
		b := task.Blob{ID: at.ID, SHA256: st.ColText(1), Size: st.ColInt(2)}
		return []store.StoredValue{walked(store.ValueBlob, at, "", b.Value())}
	}},
	{sqlWalkOrders, keyNoTask, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		of := rules.ValueCursor{Name: st.ColText(1)}
		return []store.StoredValue{
			walked(store.ValueOrderRequest, &of, "", st.ColBytes(2)),
			walked(store.ValueOrderResult, &of, "", st.ColBytes(3)),
		}
	}},
	{sqlWalkSchedules, keyNoID, func(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
		at.Name = st.ColText(0)
		return []store.StoredValue{walked(store.ValueSchedule, at, "", st.ColBytes(1))}
	}},
}

// bindRef binds the position of a reference.
func bindRef(st *sqlstmt.Stmt, name string) (*sqlstmt.Stmt, error) {
	var id task.ID
	kind, text, found := strings.Cut(name, "/")
	if found {
		if err := id.UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("%w: %q names no reference", store.ErrBadCursor, name)
		}
	}
	return st.Text(4, kind).ID(5, &id), nil
}

func walked(kind store.ValueKind, at *rules.ValueCursor, of string, value json.RawMessage) store.StoredValue {
	return store.StoredValue{ValueAt: store.ValueAt{Kind: kind, Task: at.ID, Name: at.Name, No: at.No, Try: at.Try}, Of: of, Value: value}
}

// RewriteValues implements store.Data.
func (s *Store) RewriteValues(ctx context.Context, ns, after string, limit int, fn store.RewriteFunc) (swapped int, next string, err error) {
	values, next, err := s.walkValues(ctx, ns, after, limit)
	if err != nil {
		return 0, "", err
	}
	swaps, err := fn(values)
	if err != nil {
		return 0, next, err
	}
	swapped, err = s.swapValues(ctx, ns, swaps)
	return swapped, next, err
}

// walkValues reads a page of values.
func (s *Store) walkValues(ctx context.Context, ns, after string, limit int) (values []store.StoredValue, next string, err error) {
	at, err := rules.ParseValueCursor(after, len(walks))
	if err != nil {
		return nil, "", err
	}
	limit = store.PageLimit(limit)
	err = s.read(ctx, ns, func(v *View) (err error) {
		values, next, err = v.walk(at, limit)
		if err == nil && after == "" && len(values) == 0 { // usually there are no drafts
			values, next, err = v.walk(rules.ValueCursor{Stage: 1}, limit)
		}
		return err
	})
	return values, next, err
}

func (v *View) walk(at rules.ValueCursor, limit int) (values []store.StoredValue, next string, err error) {
	stage := walks[at.Stage]
	if stage.sql == sqlWalkDrafts {
		limit = min(limit, draftsPage)
	}
	st := v.stmt(stage.sql).Text(1, v.ns).Int(3, int64(limit))
	switch stage.key {
	case keyNoTask:
		st.Int(2, at.No)
	case keyNoID:
		st.Text(2, at.Name)
	default:
		st.ID(2, &at.ID)
	}
	switch stage.key {
	case keyName:
		st.Text(4, at.Name)
	case keyNumber:
		st.Int(4, at.No)
	case keyTry:
		st.Text(4, at.Name).Int(5, at.No).Int(6, at.Try)
	case keyRef:
		if st, err = bindRef(st, at.Name); err != nil {
			return nil, "", err
		}
	}
	read := 0
	for st.Next() {
		read++
		at = rules.ValueCursor{Stage: at.Stage}
		switch stage.key {
		case keyNoTask:
			at.No = st.ColInt(0)
		case keyNoID: // its name
		default:
			at.ID = st.ColID(0)
		}
		for _, value := range stage.row(st, &at) {
			if len(value.Value) > 0 {
				values = append(values, value)
			}
		}
	}
	if err := st.Done(); err != nil {
		return nil, "", err
	}
	switch {
	case read == limit:
		next = at.String()
	case at.Stage+1 < len(walks):
		next = rules.ValueCursor{Stage: at.Stage + 1}.String()
	}
	return values, next, nil
}

// A value is replaced only if it is unchanged. Crash after the commit: the same walk skips it.
const (
	sqlSwapInput      = `UPDATE weaver_tasks SET input = ?4 WHERE namespace = ?1 AND task_id = ?2 AND input = ?3`
	sqlSwapOutput     = `UPDATE weaver_tasks SET output = ?4 WHERE namespace = ?1 AND task_id = ?2 AND output = ?3`
	sqlSwapProgress   = `UPDATE weaver_tasks SET progress = ?4 WHERE namespace = ?1 AND task_id = ?2 AND progress = ?3`
	sqlSwapSchedule   = `UPDATE weaver_schedules SET work = ?4 WHERE namespace = ?1 AND name = ?2 AND work = ?3`
	sqlSwapPayload    = `UPDATE weaver_payloads SET data = ?4 WHERE namespace = ?1 AND task_id = ?2 AND kind = ?5 AND data = ?3`
	sqlSwapStep       = `UPDATE weaver_steps SET value = ?4 WHERE namespace = ?1 AND task_id = ?2 AND name = ?5 AND by_attempt = ?6 AND by_try = ?7 AND value = ?3`
	sqlSwapSignal     = `UPDATE weaver_signals SET payload = ?4 WHERE namespace = ?1 AND task_id = ?2 AND seq = ?5 AND payload = ?3`
	sqlSwapCheckpoint = `UPDATE weaver_checkpoints SET value = ?4 WHERE namespace = ?1 AND task_id = ?2 AND name = ?5 AND value = ?3`
	sqlSwapEvent      = `UPDATE weaver_events SET body = ?4 WHERE namespace = ?1 AND task_id = ?2 AND seq = ?5 AND body = ?3`
	sqlSwapLink       = `UPDATE weaver_artifacts SET link = ?4 WHERE namespace = ?1 AND task_id = ?2 AND kind = 'artifact' AND artifact_id = ?5 AND link = ?3`
	sqlSwapOrder      = `UPDATE weaver_outbox_orders SET order_request_json = ?4 WHERE namespace = ?1 AND idempotency_key = ?2 AND order_request_json = ?3`
	sqlSwapResult     = `UPDATE weaver_idempo_ledger SET response_payload_json = ?4 WHERE namespace = ?1 AND idempotency_key = ?2 AND response_payload_json = ?3`
	sqlSwapLog        = `UPDATE weaver_logs SET body = ?4 WHERE namespace = ?1 AND task_id = ?2 AND seq = ?5 AND body = ?3`
)

// swapValues replaces values in one transaction.
func (s *Store) swapValues(ctx context.Context, ns string, swaps []store.ValueSwap) (swapped int, err error) {
	if len(swaps) == 0 {
		return 0, nil
	}
	err = s.write(ctx, ns, Heavy, func(t *Tx) error {
		swapped = 0
		undo, err := t.db.Erase(t)
		if err != nil {
			return err
		}
		defer undo()
		for rest := swaps; len(rest) > 0; {
			done := max(1, sameDrafts(rest))
			n, err := t.swapSome(rest[:done])
			if err != nil {
				return err
			}
			swapped, rest = swapped+n, rest[done:]
		}
		return nil
	})
	return swapped, err
}

// swapSome replaces one value, or the values of one row of drafts.
func (t *Tx) swapSome(swaps []store.ValueSwap) (int, error) {
	if swaps[0].Kind == store.ValueDraft {
		return t.swapDrafts(swaps)
	}
	return t.swap(&swaps[0])
}

// swap replaces one value. Inputs and outputs are in the row of their task or in
// weaver_payloads.
func (t *Tx) swap(s *store.ValueSwap) (int, error) {
	exec := func(sql string, key func(*sqlstmt.Stmt) *sqlstmt.Stmt) (int, error) {
		return key(t.stmt(sql).Text(1, t.ns).ID(2, &s.Task).Bytes(3, s.Old).Bytes(4, s.New)).Exec()
	}
	none := func(st *sqlstmt.Stmt) *sqlstmt.Stmt { return st }
	name := func(st *sqlstmt.Stmt) *sqlstmt.Stmt { return st.Text(5, s.Name) }
	no := func(st *sqlstmt.Stmt) *sqlstmt.Stmt { return st.Int(5, s.No) }
	sql, key := "", none
	switch s.Kind {
	case store.ValueOrderRequest:
		return t.stmt(sqlSwapOrder).Text(1, t.ns).Text(2, s.Name).Bytes(3, s.Old).Bytes(4, s.New).Exec()
	case store.ValueOrderResult:
		return t.stmt(sqlSwapResult).Text(1, t.ns).Text(2, s.Name).Bytes(3, s.Old).Bytes(4, s.New).Exec()
	case store.ValueSchedule:
		return t.stmt(sqlSwapSchedule).Text(1, t.ns).Text(2, s.Name).Bytes(3, s.Old).Bytes(4, s.New).Exec()
	case store.ValueInput:
		sql = sqlSwapInput
	case store.ValueOutput:
		sql = sqlSwapOutput
	case store.ValueProgress:
		return exec(sqlSwapProgress, none)
	case store.ValueStep:
		sql, key = sqlSwapStep, func(st *sqlstmt.Stmt) *sqlstmt.Stmt { return name(st).Int(6, s.No).Int(7, s.Try) }
	case store.ValueSignal:
		sql, key = sqlSwapSignal, no
	case store.ValueCheckpoint:
		sql, key = sqlSwapCheckpoint, name
	case store.ValueEvent:
		sql, key = sqlSwapEvent, no
	case store.ValueLog:
		sql, key = sqlSwapLog, no
	case store.ValueLink:
		var id task.ID
		if id.UnmarshalText([]byte(s.Name)) != nil {
			return 0, nil
		}
		return exec(sqlSwapLink, func(st *sqlstmt.Stmt) *sqlstmt.Stmt { return st.ID(5, &id) })
	}
	if sql != "" {
		if n, err := exec(sql, key); n > 0 || err != nil {
			return n, err
		}
	}
	switch s.Kind {
	case store.ValueInput, store.ValueOutput, store.ValueJoinOutput, store.ValueUnblock:
		return exec(sqlSwapPayload, func(st *sqlstmt.Stmt) *sqlstmt.Stmt { return st.Text(5, string(s.Kind)) })
	}
	return 0, nil
}
