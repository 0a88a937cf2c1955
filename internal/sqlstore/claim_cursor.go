package sqlstore

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/task"
)

// maxChunk is the maximum number of rows of a lane read at once.
const maxChunk = 1000

// laneCursor reads the due rows of one lane in order, one chunk at a time. The rows are
// deleted meanwhile, so no statement may stay open.
type laneCursor struct {
	state lane.State
	rows  []candidate
	tasks []task.Task // of rows
	at    int
	ended bool // no due row follows the rows read
	seen  int64
	last  [16]byte
	moved bool
	sql   string // the statement that reads them
}

// head returns the next due row, or nil. It reads up to n further rows.
func (c *claim) head(l *laneCursor, n int) (*candidate, error) {
	if l.at < len(l.rows) {
		return &l.rows[l.at], nil
	}
	if l.ended {
		return nil, nil
	}
	l.begin(n)
	st := c.tx.stmt(cmp.Or(l.sql, sqlDueOfLane)).Text(1, c.tx.ns).Text(2, l.state.Queue).Text(3, l.state.Type).Int(4, l.state.Priority).Int(5, c.tx.mic).
		Int(6, l.seen).Blob(7, l.last[:l.lastLen()]).Int(8, int64(n)).
		Int(9, int64(rules.NewestSchema(c.req, l.state.Type))).Text(10, l.state.Group)
	for st.Next() {
		l.add(st.Row())
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	l.end(n)
	if len(l.rows) == 0 {
		return nil, nil
	}
	return &l.rows[0], nil
}

// heads reads up to n further rows of each lane whose rows are used up, as head would, with one
// statement if the database reads many.
func (c *claim) heads(lanes []*laneCursor, n int) error {
	if c.tx.bulk == nil || len(lanes) < 2 {
		return nil
	}
	var read []*laneCursor
	for _, l := range lanes {
		if l.at == len(l.rows) && !l.ended {
			read = append(read, l)
		}
	}
	if len(read) < 2 {
		return nil
	}
	due := make([]DueLane, len(read))
	for i, l := range read {
		due[i] = DueLane{Key: l.state.Key, After: l.seen, Last: l.last[:l.lastLen()]}
		l.begin(n)
	}
	at := len(candidateColumns) + len(freshColumns) + 1
	st := c.tx.bulk.DueOfLanes(c.tx, due, n, c.leaves)
	for st.Next() {
		l := read[st.ColInt(at)-1]
		l.add(st.Row())
		l.rows[len(l.rows)-1].newer = st.ColInt(at-1) > int64(rules.NewestSchema(c.req, l.state.Type))
	}
	for _, l := range read {
		slices.SortFunc(l.rows, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:])) })
		l.end(n)
		l.rows = slices.DeleteFunc(l.rows, func(d candidate) bool { return d.newer })
	}
	return st.Done()
}

// begin makes room for n further rows.
func (l *laneCursor) begin(n int) {
	if cap(l.rows) < n {
		l.rows, l.tasks = make([]candidate, 0, n), make([]task.Task, n)
	}
	l.rows, l.at = l.rows[:0], 0
}

// add adds a row that was read.
func (l *laneCursor) add(r *sqlstmt.Row) {
	t := &l.tasks[len(l.rows)]
	*t = task.Task{}
	l.rows = append(l.rows, candidate{task: t})
	scanCandidate(r, &l.rows[len(l.rows)-1])
}

// end notes the position behind the rows that were read, of at most n.
func (l *laneCursor) end(n int) {
	l.ended = len(l.rows) < n
	if len(l.rows) > 0 {
		last := &l.rows[len(l.rows)-1]
		l.seen, l.last, l.moved = last.due, last.id, true
	}
}

// lastLen returns 0 for the initial position, which sorts before every row.
func (l *laneCursor) lastLen() int {
	if l.moved {
		return len(l.last)
	}
	return 0
}

// cursor returns a cursor over the due rows of a lane.
func (c *claim) cursor(s *lane.State) *laneCursor {
	l := &laneCursor{state: *s, seen: s.Bound}
	if c.leaves {
		l.sql = sqlLeaveSent
	}
	if b := &c.req.Behind; int64(b.Priority) == s.Priority {
		l.seen, l.last, l.moved = b.Due.UnixMicro(), b.Task, true
	}
	return l
}
