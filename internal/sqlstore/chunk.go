package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/task"
)

// A statement costs about as much as the row that it writes: its cursors are
// opened and closed, its bindings cross into SQLite. So what happens alike to
// many tasks of a batch (first claims, steps and ends of plain tasks) is
// written by statements that take a chunk of them.
//
// The guard stays what it is, once for each row (R2). How many rows it
// accepted is all that a chunk asks: when some are missing, the chunk is
// undone and its tasks are done one by one, which finds out whose lease is lost.

// chunkSizes are how many rows there are statements for, the most first. With
// a size of one no row is left over.
var chunkSizes = []int{32, 8, 1}

// chunkSQL is one statement for each size.
type chunkSQL map[int]string

func newChunkSQL(of func(n int) string) chunkSQL {
	sqls := make(chunkSQL, len(chunkSizes))
	for _, n := range chunkSizes {
		sqls[n] = of(n)
	}
	return sqls
}

// newIDSQL is a chunkSQL of statements over tasks whose IDs begin at parameter 2. in
// stands behind a column of IDs.
func newIDSQL(of func(in string) string) chunkSQL {
	return newChunkSQL(func(n int) string {
		if n == 1 {
			return of("IN (/*ids*/?2)")
		}
		return of("IN (" + params(2, n) + ")")
	})
}

// byIDs calls fn with statements over ids, a chunk at a time.
func (v *View) byIDs(sqls chunkSQL, ids []task.ID, fn func(st *sqlstmt.Stmt, chunk []task.ID) error) error {
	if c, ok := v.conn.(ListConn); ok {
		for chunk := range slices.Chunk(ids, readChunk) {
			if err := fn(c.StmtIDs(sqls[1], 2, chunk).Text(1, v.ns), chunk); err != nil {
				return err
			}
		}
		return nil
	}
	return inChunks(ids, func(chunk []task.ID) error {
		st := v.stmt(sqls[len(chunk)]).Text(1, v.ns)
		for i := range chunk {
			st.ID(2+i, &chunk[i])
		}
		return fn(st, chunk)
	})
}

// params returns n numbered parameters.
func params(first, n int) string {
	return repeat(n, ", ", func(i int) string { return fmt.Sprint("?", first+i) })
}

func repeat(n int, sep string, each func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = each(i)
	}
	return strings.Join(parts, sep)
}

// inChunks calls fn with each chunk of rows.
func inChunks[T any](rows []T, fn func(chunk []T) error) error {
	for _, n := range chunkSizes {
		for len(rows) >= n {
			if err := fn(rows[:n]); err != nil {
				return err
			}
			rows = rows[n:]
		}
	}
	return nil
}

// byClaim keeps elements of a batch that may be written together, by claim, in
// the order in which the claims were met.
type byClaim[T any] struct {
	rows  map[task.LeaseID][]T
	order []task.LeaseID
}

func (b *byClaim[T]) put(lease task.LeaseID, row T) {
	if b.rows == nil {
		b.rows = make(map[task.LeaseID][]T)
	}
	if b.rows[lease] == nil {
		b.order = append(b.order, lease)
	}
	b.rows[lease] = append(b.rows[lease], row)
}

// write writes the elements: many takes a chunk of one claim. When it reports
// that not all of the chunk was accepted, what it wrote is undone, and one takes
// each element by itself, which finds out whose lease is lost.
func (b *byClaim[T]) write(t *Tx, many func(chunk []T) (accepted bool, err error), one func(row T) error) error {
	for _, lease := range b.order {
		err := inChunks(b.rows[lease], func(chunk []T) error {
			return t.undoable(func() error {
				accepted, err := many(chunk)
				if err == nil && !accepted {
					err = errUndo
				}
				return err
			}, func() error {
				for _, row := range chunk {
					if err := one(row); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sqlUndispatchMany is sqlDeleteDispatch for a chunk.
var sqlUndispatchMany = newChunkSQL(func(n int) string {
	return `DELETE FROM weaver_outbox_events WHERE namespace = ?1 AND task_id IN (` + params(2, n) + `)`
})

// undispatchMany makes tasks unclaimable.
func (t *Tx) undispatchMany(ids []task.ID) error {
	st := t.stmt(sqlUndispatchMany[len(ids)]).Text(1, t.ns)
	for i := range ids {
		st.ID(2+i, &ids[i])
	}
	return st.Run()
}
