package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/task"
)

// A statement costs about as much as the row that it writes: its cursors are opened and
// closed, its bindings cross into SQLite. Many tasks of a batch change in the same way: first
// claims, steps and ends of plain tasks. One statement writes these changes for a chunk of
// tasks.
//
// The guard still applies to each row (R2). A chunk only checks the number of accepted rows.
// If some are missing, the chunk is rolled back. Its tasks are then written one by one, which
// finds the lost leases.

// chunkSizes are the chunk sizes that have statements, in descending order. Size one covers
// every remainder.
var chunkSizes = []int{32, 8, 1}

// chunkSQL maps each chunk size to its statement.
type chunkSQL map[int]string

func newChunkSQL(of func(n int) string) chunkSQL {
	sqls := make(chunkSQL, len(chunkSizes))
	for _, n := range chunkSizes {
		sqls[n] = of(n)
	}
	return sqls
}

// newIDSQL returns a chunkSQL of statements over tasks whose IDs begin at parameter 2. in is
// the condition to write after a column of IDs.
func newIDSQL(of func(in string) string) chunkSQL {
	return newChunkSQL(func(n int) string {
		if n == 1 {
			return of("IN (/*ids*/?2)")
		}
		return of("IN (" + params(2, n) + ")")
	})
}

// byIDs calls fn with statements over ids, one chunk at a time.
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

// byClaim groups elements of a batch that may be written together, by claim, in the order of
// first appearance.
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

// write writes the elements. many writes a chunk of one claim, and reports whether the guard
// accepted all of it. If not, the chunk is rolled back. Then one writes each element by
// itself, which finds the lost leases.
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
