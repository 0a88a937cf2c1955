package conn

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxUnsent is the number of queued bytes from which on they are sent before an answer is
// requested, so that the server works on them already.
const maxUnsent = 32 << 10

// run is one request in a round trip, with its answer.
type run struct {
	kind runKind
	stmt *Stmt // nil for a request that is not a user's statement
	tx   uint64

	done    bool
	err     error
	changed int64
	tag     string                       // of a runControl
	desc    *pgconn.StatementDescription // of a runPrepare
	rows
}

type runKind uint8

const (
	runStatement runKind = iota
	runControl           // BEGIN, COMMIT and others
	runPrepare
	runClose
)

// enter ensures that requests can be queued.
func (c *Conn) enter() error {
	switch {
	case c.err != nil:
		return c.err
	case c.pipe != nil:
		return nil
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.pg.IsClosed():
		return errBroken
	case c.pg.IsBusy():
		return errors.New("the connection is being used: read or close the rows of the last query first, and use a transaction from one goroutine")
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.RoundTimeout)
	c.pipe, c.cancel = c.pg.StartPipeline(ctx), cancel
	return nil
}

// push records a request that was just sent into the pipeline.
func (c *Conn) push(r *run, size int) {
	r.tx = c.tx
	c.queue = append(c.queue, r)
	c.size += size + 64
	if c.size >= maxUnsent {
		c.size = 0
		_ = c.pipe.Flush() // the Sync returns the same error
	}
}

// control queues a statement without parameters and rows.
func (c *Conn) control(sql string) (*run, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	c.pipe.SendQueryParams(sql, nil, nil, nil, nil)
	r := &run{kind: runControl}
	c.push(r, len(sql))
	return r, nil
}

// Flush sends the queued requests and reads the answers. It returns the error with which the
// transaction failed.
func (c *Conn) Flush() error {
	if c.pipe == nil {
		return c.err
	}
	p, queue := c.pipe, c.queue
	c.pipe, c.queue, c.size, c.failed = nil, nil, 0, nil
	c.rounds++
	err := p.Sync()
	if err == nil {
		err = c.receive(p, queue)
	}
	_ = p.Close() // err has its error
	if err != nil {
		err = c.explain(c.ctx, err)
	}
	c.cancel()
	for _, r := range queue {
		if !r.done || r.err != nil {
			c.lost(r, err)
		}
	}
	if err != nil && c.open {
		c.err = err
	}
	clear(queue)
	c.queue = queue[:0]
	return err
}

// receive reads the answers of a round trip and returns the first error.
func (c *Conn) receive(p *pgconn.Pipeline, queue []*run) error {
	var first error
	for _, r := range queue {
		if first = r.receive(p); first != nil {
			c.failed = r
			break // the server skips the rest
		}
		r.done = true
	}
	for { // the answer to the Sync
		res, err := p.GetResults()
		if err != nil && first == nil {
			first = err
		}
		_, synced := res.(*pgconn.PipelineSync)
		switch {
		case synced:
			return first
		case isAnswer(err): // for example of a constraint that is checked at the end
		case err != nil:
			return first
		case res == nil:
			return errors.Join(first, errBroken)
		}
	}
}

// lost records that a run did not happen, or failed.
func (c *Conn) lost(r *run, err error) {
	r.done = true
	if r.err == nil {
		r.err = err
	}
	if r.kind == runPrepare {
		r.stmt.prepared = false
	}
	if r == c.failed && r.stmt != nil && outdated(err) {
		r.stmt.prepared = false
		c.described.Delete(r.stmt.text)
	}
}

// receive reads the answer to one request.
func (r *run) receive(p *pgconn.Pipeline) error {
	res, err := p.GetResults()
	if err != nil {
		return r.explain(err)
	}
	switch res := res.(type) {
	case *pgconn.CloseComplete:
		return nil
	case *pgconn.StatementDescription:
		r.desc = res
		if d := r.stmt.desc; d != nil && !d.sameTypes(res) {
			return errOutdated // requests queued behind it were encoded as d says
		}
		return nil
	case *pgconn.ResultReader:
		if r.stmt != nil {
			r.expect(r.stmt.answered)
		}
		for res.NextRow() {
			r.add(res.Values())
		}
		if r.stmt != nil {
			r.stmt.answered = size{len(r.arena), len(r.ends)}
		}
		if r.kind == runStatement && !r.stmt.named() {
			r.types(res.FieldDescriptions())
		}
		tag, err := res.Close()
		if err != nil {
			return r.explain(err)
		}
		if !tag.Select() {
			r.changed = tag.RowsAffected()
		}
		if r.kind == runControl {
			r.tag = tag.String()
		}
		return nil
	}
	return fmt.Errorf("%w: unexpected answer of the server (%T)", errBroken, res)
}

// explain adds the statement to an error that concerns its text or its values.
func (r *run) explain(err error) error {
	var pg *pgconn.PgError
	if r.stmt == nil || !errors.As(err, &pg) || len(pg.Code) != 5 {
		return err
	}
	if _, ok := meanings[pg.Code]; ok && pg.Code != "42703" && pg.Code != "42883" {
		return err
	}
	switch pg.Code[:2] {
	case "22", "42", "0A":
		return fmt.Errorf("%w, in the statement %s", err, r.stmt.text)
	}
	return err
}

// explain explains a missing answer: it returns the cause of an error that did not come from
// the server.
func (c *Conn) explain(ctx context.Context, err error) error {
	switch {
	case isAnswer(err), errors.Is(err, errOutdated):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w within %v", errBroken, errSilent, c.RoundTimeout)
	case errors.Is(err, errBroken):
		return err
	case pgconn.SafeToRetry(err):
		return fmt.Errorf("%w before anything was sent: %w", errBroken, err)
	}
	return fmt.Errorf("%w: %w", errBroken, err)
}

// isAnswer reports whether an error came from the server.
func isAnswer(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg)
}
