package sqlstore

import (
	"bytes"
	"encoding/json"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Inputs in drafts are walked first. A draft that is stored meanwhile is found later as the
// input of its task, or was replaced before.
const (
	sqlWalkDrafts = `
SELECT task_id, first, drafts FROM weaver_drafts WHERE namespace = ?1 AND (task_id, first) > (?2, ?4) ORDER BY task_id, first LIMIT ?3`
	sqlDraftsAt   = `SELECT drafts FROM weaver_drafts WHERE namespace = ?1 AND task_id = ?2 AND first = ?3 /*lock*/`
	sqlSwapDrafts = `UPDATE weaver_drafts SET drafts = ?4 WHERE namespace = ?1 AND task_id = ?2 AND first = ?3`
)

// draftsPage is the maximum number of rows on a page. One row has up to rules.MaxMoves inputs.
const draftsPage = 4

// walkDrafts reads the inputs of one row.
func walkDrafts(st *sqlstmt.Stmt, at *rules.ValueCursor) []store.StoredValue {
	at.No = st.ColInt(1)
	list, err := unpackDrafts(st.ColBytes(2))
	if err != nil { // the broken row is visible, but cannot be replaced
		return []store.StoredValue{{ValueAt: store.ValueAt{Kind: store.ValueDraft, Task: at.ID, Name: at.ID.String(), No: at.No}, Value: json.RawMessage("{")}}
	}
	values := make([]store.StoredValue, 0, len(list))
	for i := range list {
		if list[i].More {
			continue
		}
		values = append(values, store.StoredValue{
			ValueAt: store.ValueAt{Kind: store.ValueDraft, Task: list[i].ID, Name: at.ID.String(), No: at.No}, Of: list[i].Type, Value: list[i].Input,
		})
	}
	return values
}

// sameDrafts returns the number of leading swaps of one row.
func sameDrafts(swaps []store.ValueSwap) (n int) {
	for n < len(swaps) && swaps[n].Kind == store.ValueDraft && swaps[n].Name == swaps[0].Name && swaps[n].No == swaps[0].No {
		n++
	}
	return n
}

// swapDrafts replaces inputs of one row.
func (t *Tx) swapDrafts(swaps []store.ValueSwap) (n int, err error) {
	var parent task.ID
	if parent.UnmarshalText([]byte(swaps[0].Name)) != nil {
		return 0, nil
	}
	st := t.stmt(sqlDraftsAt).Text(1, t.ns).ID(2, &parent).Int(3, swaps[0].No)
	var packed []byte
	if st.One() {
		packed = st.ColBytes(0)
	}
	if err := st.Done(); err != nil || len(packed) == 0 {
		return 0, err // they are stored by now
	}
	list, err := unpackDrafts(packed)
	if err != nil {
		return 0, err
	}
	at := make(map[task.ID]int, len(list))
	for i := range list {
		if !list[i].More {
			at[list[i].ID] = i
		}
	}
	for i := range swaps {
		if k, ok := at[swaps[i].Task]; ok && bytes.Equal(list[k].Input, swaps[i].Old) {
			list[k].Input = swaps[i].New
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	if packed, err = packDrafts(list); err != nil { // without Like
		return 0, err
	}
	changed, err := t.stmt(sqlSwapDrafts).Text(1, t.ns).ID(2, &parent).Int(3, swaps[0].No).Bytes(4, packed).Exec()
	if changed == 0 {
		n = 0
	}
	return n, err
}
