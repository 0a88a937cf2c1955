package postgres

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

// copyFrom is how many new tasks of a kind are stored by COPY, or more: it takes two round
// trips more than a statement over arrays, and a fifth less of the server for each row.
const copyFrom = 500

// copyMost is how many rows one COPY takes: each has the time of a statement.
const copyMost = 5_000

// copyable reports whether tasks of a kind can be stored by COPY: it stores no columns but
// those of copyAlike, and none that rows have of their own.
func copyable(a *sqlstore.Alike, rows int) bool {
	return rows >= copyFrom && *a == sqlstore.Alike{
		Type: a.Type, Queue: a.Queue, State: a.State, Options: a.Options, Key: a.Key, Priority: a.Priority,
		SchemaVersion: a.SchemaVersion, MaxAttempts: a.MaxAttempts, MaxRepairs: a.MaxRepairs, Plain: a.Plain, AllowFailure: a.AllowFailure,
	}
}

// copyAlike stores new tasks that are available at an instant, as sqlInsertNew does: it
// fails when one of them is there already.
func copyAlike(c *conn.Conn, ns string, now int64, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	for part := range slices.Chunk(rows, copyMost) {
		if err := copyRows(c, ns, now, a, part); err != nil {
			return err
		}
	}
	return nil
}

// copyRows is copyAlike for as many as one COPY takes.
func copyRows(c *conn.Conn, ns string, now int64, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	const (
		tasks = `COPY weaver_tasks (namespace, task_type, queue, state, options_json, concurrency_key, priority, schema_version,
  max_attempts, max_repairs, plain, allow_failure, updated_at, task_id, input, created_at) FROM STDIN (FORMAT binary)`
		dispatch = `COPY weaver_outbox_events (namespace, queue, task_type, concurrency_key, priority, available_at, task_id) FROM STDIN (FORMAT binary)`
	)
	var alike tuple
	alike = alike.text(ns).text(a.Type).text(a.Queue).text(a.State).orNull(a.Options).orNull(a.Key).bigint(a.Priority).bigint(a.SchemaVersion).
		bigint(a.MaxAttempts).bigint(a.MaxRepairs).flag(a.Plain).flag(a.AllowFailure).bigint(now)
	err := c.Copy(tasks, newCopying(16, alike, rows, func(t tuple, r *sqlstore.AlikeTask) tuple {
		t = t.bytes(r.ID[:])
		if len(r.Input) == 0 {
			t = t.null()
		} else {
			t = t.bytes(r.Input)
		}
		return t.bigint(r.ID.Time().UnixMicro())
	}))
	if err != nil {
		return err
	}
	alike = tuple(nil).text(ns).text(a.Queue).text(a.Type).orNull(a.Key).bigint(a.Priority).bigint(now)
	return c.Copy(dispatch, newCopying(7, alike, rows, func(t tuple, r *sqlstore.AlikeTask) tuple { return t.bytes(r.ID[:]) }))
}

// tuple is a row, or a part of it, in the binary format of COPY.
type tuple []byte

func (t tuple) bytes(v []byte) tuple {
	return append(binary.BigEndian.AppendUint32(t, uint32(len(v))), v...)
}

func (t tuple) text(v string) tuple {
	return append(binary.BigEndian.AppendUint32(t, uint32(len(v))), v...)
}

func (t tuple) null() tuple { return append(t, 0xff, 0xff, 0xff, 0xff) }

func (t tuple) orNull(v string) tuple {
	if v == "" {
		return t.null()
	}
	return t.text(v)
}

func (t tuple) bigint(v int64) tuple {
	return binary.BigEndian.AppendUint64(append(t, 0, 0, 0, 8), uint64(v))
}

func (t tuple) flag(v bool) tuple {
	if v {
		return append(t, 0, 0, 0, 2, 0, 1)
	}
	return append(t, 0, 0, 0, 2, 0, 0)
}

// copying is the input of a COPY: rows that begin alike.
type copying struct {
	alike tuple // with the number of fields before it
	rows  []sqlstore.AlikeTask
	own   func(t tuple, r *sqlstore.AlikeTask) tuple // appends what a row has of its own
	ended bool
	part  tuple // made, and not read yet
	from  int   // where in part
}

// copyPart is about how many bytes are made at once. The server works on them meanwhile.
const copyPart = 32 << 10

func newCopying(fields uint16, alike tuple, rows []sqlstore.AlikeTask, own func(tuple, *sqlstore.AlikeTask) tuple) *copying {
	header := append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)
	return &copying{alike: append(binary.BigEndian.AppendUint16(nil, fields), alike...), rows: rows, own: own, part: header}
}

// Read implements io.Reader.
func (c *copying) Read(p []byte) (int, error) {
	if c.from == len(c.part) {
		if c.ended {
			return 0, io.EOF
		}
		c.part, c.from = c.part[:0], 0
		for len(c.rows) > 0 && len(c.part) < copyPart {
			c.part = c.own(append(c.part, c.alike...), &c.rows[0])
			c.rows = c.rows[1:]
		}
		if len(c.rows) == 0 {
			c.part, c.ended = append(c.part, 0xff, 0xff), true // the end of the rows
		}
	}
	n := copy(p, c.part[c.from:])
	c.from += n
	return n, nil
}
