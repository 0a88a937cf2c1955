package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Bounds of what is sent of a topic.
const (
	maxFrame     = 256 << 10         // bytes of a frame, all of it
	maxShown     = maxFrame - 24<<10 // bytes of a row: the rest is for the text of the topic
	maxTopicRows = 1000
)

// state is what a topic shows at an instant. It never changes.
type state struct {
	rows    []stateRow
	at      map[string]int // the places of rows, by id
	next    string         // the cursor of what follows
	leftOut int            // rows beyond maxTopicRows
	full    bool           // rows have a form with values, if the kind of the topic has
	version uint64         // changes with what is shown

	problem *Problem // of the last read: then the rest is of the read before
	unknown bool     // the problem is a failure of the server
}

// stateRow is one row, as it is sent. The bytes are a Row.
type stateRow struct {
	id    string
	rev   uint64    // changes with the row
	shown [2][]byte // the full form is there if state.full is set, or is the plain one
}

// Which of stateRow.shown a principal gets.
const (
	shownPlain = iota
	shownFull
)

// away reports whether the topic could not be read, and should be tried again.
func (s *state) away() bool { return s.problem != nil && s.problem.Status >= 500 }

// shown makes the state of a view, with the full forms of rows if somebody who watches may
// see them; was is the one before, or nil.
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
		default: // who has seen the plain form has seen all of it, and nobody has seen the other
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

// failing is the state of a topic that could not be read.
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

// row finds a row.
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

// renderRow makes the JSON of a Row. One that is too large for a frame goes without
// values, or, if that does not help, without anything but its id.
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
	shown, _ = marshal(Row{ID: id, Cut: true}) // a text and a boolean
	return shown
}

// marshal is json.Marshal without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(buf.Bytes(), "\n"), err
}

// cursor is how far a watcher has come with one topic.
type cursor struct {
	topic  *topic
	done   *state            // that was sent whole
	sent   map[string]uint64 // what the client has: rows with their versions; nil: nothing
	place  int               // the row to go on with, when not all fit
	failed *state            // the state whose problem was sent last; nil: what followed was sent
}

// problem returns the problem that the client is to be told of.
func (c *cursor) problem() *Problem {
	st := c.topic.state.Load()
	if st == nil || st.problem == nil || c.failed != nil && c.failed.problem.Type == st.problem.Type {
		return nil
	}
	c.failed = st
	return st.problem
}

// append adds to b what the client lacks of the topic, as long as all of it has at most so
// many bytes. It reports whether there was no room for the rest: the next frame begins
// with it.
func (c *cursor) append(b []byte, class, most int) (longer []byte, full bool) {
	st := c.topic.state.Load()
	switch {
	case st == nil, st.problem != nil, c.done != nil && c.done.version == st.version:
		return b, false
	case class == shownFull && !st.full && c.topic.kind.full:
		return b, false // it is being read again, for this watcher
	}
	most -= 1 << 10 // for what follows the rows
	longer = appendText(append(b, `{"topic":`...), c.topic.text)
	removed, changed := c.compare(st)
	// A snapshot that does not fit goes on with deltas, so that it ends.
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

// compare returns the rows that the client has and that are gone, and how many others
// changed.
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

// separator begins a list, or goes on with it.
func separator(n int, first string) string {
	if n == 0 {
		return first
	}
	return ","
}

// closed ends a list of n.
func closed(b []byte, n int) []byte {
	if n == 0 {
		return b
	}
	return append(b, ']')
}

func appendText(b []byte, s string) []byte {
	text, _ := marshal(s) // a text
	return append(b, text...)
}
