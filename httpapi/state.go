package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Size limits of the frames of a topic.
const (
	maxFrame     = 256 << 10         // bytes of a whole frame
	maxShown     = maxFrame - 24<<10 // bytes of a row; the rest is for the topic's name
	maxTopicRows = 1000
)

// state is the content of a topic at an instant. It is immutable.
type state struct {
	rows    []stateRow
	at      map[string]int // positions of rows by id
	next    string         // the cursor of the next page
	leftOut int            // rows beyond maxTopicRows
	full    bool           // rows have a form with values, if the topic's kind has one
	version uint64         // changes with the content

	problem *Problem // of the last read; the other fields are from the read before
	unknown bool     // the problem is a failure of the server
}

// stateRow is one encoded row. The bytes are a Row.
type stateRow struct {
	id    string
	rev   uint64    // changes with the row
	shown [2][]byte // the full form is the plain one unless state.full is set
}

// Indexes of stateRow.shown, by the access of a principal.
const (
	shownPlain = iota
	shownFull
)

// away reports whether the topic could not be read, and should be retried.
func (s *state) away() bool { return s.problem != nil && s.problem.Status >= 500 }

// shown returns the state of a view, with the full forms of rows if a watcher may see them. was is
// the previous state, or nil.
func (h *hub) shown(v *view, was *state, full bool) *state {
	if v.err != nil {
		return failing(v.err, was)
	}
	st := &state{next: v.next, full: full, at: make(map[string]int, len(v.rows))}
	if st.leftOut = max(0, len(v.rows)-maxTopicRows); st.leftOut > 0 {
		v.rows = v.rows[:maxTopicRows]
	}
	same := was != nil && was.problem == nil && was.next == st.next && was.leftOut == st.leftOut && len(was.rows) == len(v.rows)
	st.rows = make([]stateRow, len(v.rows))
	for i := range v.rows {
		row := &st.rows[i]
		*row = shownRow(&v.rows[i], full)
		st.at[row.id] = i
		old := was.row(row.id)
		switch {
		case old == nil, !bytes.Equal(old.shown[shownPlain], row.shown[shownPlain]), full && was.full && !bytes.Equal(old.shown[shownFull], row.shown[shownFull]):
			row.rev, same = h.revs.Add(1), false
		case full == was.full:
			*row = *old
		default: // a client with the plain form has seen all of it, and no client has the other
			row.rev = old.rev
		}
		same = same && was.rows[i].id == row.id
	}
	switch {
	case same && full == was.full:
		return was
	case same:
		st.version = was.version
	default:
		st.version = h.revs.Add(1)
	}
	return st
}

// failing returns the state of a topic that could not be read.
func failing(err error, was *state) *state {
	p, known := problemOf(err)
	if was != nil && was.problem != nil && was.problem.Type == p.Type {
		return was
	}
	st := &state{problem: p, unknown: !known}
	if was != nil {
		st.rows, st.at, st.next, st.leftOut, st.full, st.version = was.rows, was.at, was.next, was.leftOut, was.full, was.version
	}
	return st
}

// row returns a row by id, or nil.
func (s *state) row(id string) *stateRow {
	if s == nil {
		return nil
	}
	if i, ok := s.at[id]; ok {
		return &s.rows[i]
	}
	return nil
}

func shownRow(v *viewRow, full bool) stateRow {
	row := stateRow{id: v.id}
	row.shown[shownPlain] = renderRow(v.id, v.plain)
	switch {
	case v.full == nil:
		row.shown[shownFull] = row.shown[shownPlain]
	case full:
		row.shown[shownFull] = renderRow(v.id, v.full)
	}
	return row
}

// renderRow encodes a Row. A row that is too large for a frame is sent without values, or with its
// id only if that does not suffice.
func renderRow(id string, v any) []byte {
	shown, err := marshal(Row{ID: id, Row: v})
	if err == nil && len(shown) <= maxShown {
		return shown
	}
	if t, ok := v.(Task); ok {
		t.Input, t.Output, t.UnblockInput = nil, nil, nil
		if shown, err = marshal(Row{ID: id, Row: t, Cut: true}); err == nil && len(shown) <= maxShown {
			return shown
		}
	}
	shown, _ = marshal(Row{ID: id, Cut: true}) // a text and a boolean always encode
	return shown
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(buf.Bytes(), "\n"), err
}

// cursor is a watcher's progress in one topic.
type cursor struct {
	topic  *topic
	done   *state            // the last state that was sent completely
	sent   map[string]uint64 // rows that the client has, with their versions; nil: no rows
	place  int               // the next row, if not all fit
	failed *state            // the state whose problem was sent last; nil: later content was sent
}

// problem returns the problem to send to the client.
func (c *cursor) problem() *Problem {
	st := c.topic.state.Load()
	if st == nil || st.problem == nil || c.failed != nil && c.failed.problem.Type == st.problem.Type {
		return nil
	}
	c.failed = st
	return st.problem
}

// append appends to b the part of the topic that the client lacks, up to a total of most bytes. It
// reports whether the rest did not fit: the next frame begins with it.
func (c *cursor) append(b []byte, class, most int) (longer []byte, full bool) {
	st := c.topic.state.Load()
	switch {
	case st == nil, st.problem != nil, c.done != nil && c.done.version == st.version:
		return b, false
	case class == shownFull && !st.full && c.topic.kind.full:
		return b, false // it is being read again for this watcher
	}
	most -= 1 << 10 // for the text after the rows
	longer = appendText(append(b, `{"topic":`...), c.topic.text)
	removed, changed := c.compare(st)
	// A snapshot that does not fit continues with deltas, so that it ends.
	whole := c.sent == nil || c.failed != nil || c.done != nil && len(removed)+changed > len(st.rows)
	if whole {
		longer = append(longer, `,"snapshot":true`...)
		if len(st.rows) > 0 && len(longer)+len(st.rows[0].shown[class]) > most {
			return b, true
		}
		c.sent, c.place, removed = make(map[string]uint64, len(st.rows)), 0, nil
	}
	gone, rows := 0, 0
	for _, id := range removed {
		if full = len(longer)+6*len(id) > most; full {
			break
		}
		longer = appendText(append(longer, separator(gone, `,"removed":[`)...), id)
		delete(c.sent, id)
		gone++
	}
	longer = closed(longer, gone)
	for k := range st.rows {
		i := (c.place + k) % len(st.rows)
		row := &st.rows[i]
		if rev, has := c.sent[row.id]; has && rev == row.rev {
			continue
		}
		if full = full || len(longer)+len(row.shown[class]) > most; full {
			c.place = i
			break
		}
		longer = append(append(longer, separator(rows, `,"rows":[`)...), row.shown[class]...)
		c.sent[row.id] = row.rev
		rows++
	}
	longer = closed(longer, rows)
	if full && gone+rows == 0 {
		return b, true
	}
	if whole && rows == 0 {
		longer = append(longer, `,"rows":[]`...)
	}
	if c.failed, c.done = nil, st; full {
		longer, c.done = append(longer, `,"more":true`...), nil
	}
	if st.leftOut > 0 {
		longer = strconv.AppendInt(append(longer, `,"left_out":`...), int64(st.leftOut), 10)
	}
	if st.next != "" {
		longer = appendText(append(longer, `,"next":`...), st.next)
	}
	return append(longer, '}'), full
}

// compare returns the rows of the client that were removed, and the number of changed or new rows.
func (c *cursor) compare(st *state) (removed []string, changed int) {
	for id := range c.sent {
		if st.row(id) == nil {
			removed = append(removed, id)
		}
	}
	slices.Sort(removed)
	for i := range st.rows {
		if rev, has := c.sent[st.rows[i].id]; !has || rev != st.rows[i].rev {
			changed++
		}
	}
	return removed, changed
}

// separator begins or continues a list.
func separator(n int, first string) string {
	if n == 0 {
		return first
	}
	return ","
}

// closed ends a list of n elements.
func closed(b []byte, n int) []byte {
	if n == 0 {
		return b
	}
	return append(b, ']')
}

func appendText(b []byte, s string) []byte {
	text, _ := marshal(s) // a text always encodes
	return append(b, text...)
}
