package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

// stepGuard keeps the function of a StepTx from ending the transaction itself. That would keep its
// effects without the step's value, and the next attempt would repeat them.
type stepGuard struct {
	mu         sync.Mutex
	returned   bool   // the function has returned; the store may end the transaction
	refused    string // the first statement or call that would have ended the transaction
	rolledBack bool
}

// commit rejects a commit by the function; it accepts the store's own.
func (g *stepGuard) commit() error { return g.refuse("a commit") }

// rollback records a rollback by the function.
func (g *stepGuard) rollback() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rolledBack = g.rolledBack || !g.returned
}

// give lets the store end the transaction: the function has returned.
func (g *stepGuard) give() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned = true
}

// statement rejects a text that would end the transaction.
func (g *stepGuard) statement(sql string) error {
	if verb := endingVerb(sql); verb != "" {
		return g.refuse("the statement " + verb)
	}
	return nil
}

func (g *stepGuard) refuse(what string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.returned {
		return nil
	}
	if g.refused == "" {
		g.refused = what
	}
	return fmt.Errorf("%s: %w: return from it instead", what, store.ErrStepTxEnded)
}

// end is called when the function has returned, with its error and the status of the transaction.
// It returns store.ErrStepTxEnded if the function ended the transaction itself. A function that
// rolls back and returns an error is accepted.
func (g *stepGuard) end(ctx context.Context, err error, status byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned = true
	const advice = "leave both to StepTx: return nil to commit, an error to roll back"
	switch {
	case g.refused != "":
		return fmt.Errorf("%w: %s was refused (it neither committed nor rolled back), and nothing of it was kept; %s", store.ErrStepTxEnded, g.refused, advice)
	case ctx.Err() != nil || err != nil:
		return nil
	case g.rolledBack:
		return fmt.Errorf("%w: it rolled back and returned no error, and nothing of it was kept; %s", store.ErrStepTxEnded, advice)
	case status == 'I':
		return fmt.Errorf("%w, past its handle; if it committed, what it wrote stays, and the value is not recorded; %s", store.ErrStepTxEnded, advice)
	}
	return nil
}

// endingVerb returns the first statement of a text that begins or ends a transaction, or "".
// Savepoints do neither.
func endingVerb(sql string) string {
	for sql != "" {
		var first, second string
		first, second, sql = nextStatement(sql)
		switch first {
		case "COMMIT", "END", "ABORT", "BEGIN":
			return first
		case "ROLLBACK":
			if second != "TO" {
				return first
			}
		case "PREPARE", "START":
			if second == "TRANSACTION" {
				return first + " " + second
			}
		}
	}
	return ""
}

// nextStatement returns the first two words of a statement, in capitals, and the text after it. The
// second word of "ROLLBACK WORK TO" is TO.
func nextStatement(sql string) (first, second, rest string) {
	words := 0
	for i := 0; i < len(sql); {
		n := quotedLen(sql[i:])
		switch {
		case n > 0:
		case sql[i] == ';':
			return first, second, sql[i+1:]
		case isLetter(sql[i]):
			n = 1
			for i+n < len(sql) && (isLetter(sql[i+n]) || '0' <= sql[i+n] && sql[i+n] <= '9' || sql[i+n] == '$') {
				n++
			}
			w := strings.ToUpper(sql[i : i+n])
			if words == 1 && (w == "WORK" || w == "TRANSACTION" && first == "ROLLBACK") {
				break
			}
			switch words++; words {
			case 1:
				first = w
			case 2:
				second = w
			}
		default:
			n = 1
		}
		i += n
	}
	return first, second, ""
}

func isLetter(c byte) bool {
	return c == '_' || c >= 0x80 || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// quotedLen returns the length of the quoted text or comment at the start of sql; 0 if there is
// neither.
func quotedLen(sql string) int {
	until := func(after int, mark string) int {
		if at := strings.Index(sql[after:], mark); at >= 0 {
			return after + at + len(mark)
		}
		return len(sql)
	}
	switch {
	case sql[0] == '\'' || sql[0] == '"':
		return until(1, sql[:1])
	case (sql[0] == 'E' || sql[0] == 'e') && len(sql) > 1 && sql[1] == '\'':
		return escapedLen(sql)
	case strings.HasPrefix(sql, "--"):
		return until(2, "\n")
	case strings.HasPrefix(sql, "/*"):
		return commentLen(sql)
	case sql[0] == '$':
		end := strings.IndexByte(sql[1:], '$')
		if end < 0 || strings.ContainsFunc(sql[1:1+end], func(r rune) bool { return r < 0x80 && !isLetter(byte(r)) && (r < '0' || r > '9') }) {
			return 0
		}
		return until(end+2, sql[:end+2])
	}
	return 0
}

// escapedLen returns the length of a text E'…', in which a backslash escapes a quote.
func escapedLen(sql string) int {
	for i := 2; i < len(sql); i++ {
		switch sql[i] {
		case '\\':
			i++
		case '\'':
			return i + 1
		}
	}
	return len(sql)
}

// commentLen returns the length of a comment; comments nest.
func commentLen(sql string) int {
	depth := 0
	for i := 0; i < len(sql); i++ {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(sql[i:], "*/"):
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(sql)
}

// stepTx is the pgx.Tx that the function of a StepTx gets.
type stepTx struct {
	pgx.Tx
	guard  *stepGuard
	nested bool // a savepoint
}

// Begin implements pgx.Tx.
func (t stepTx) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return stepTx{tx, t.guard, true}, nil
}

// Commit implements pgx.Tx.
func (t stepTx) Commit(ctx context.Context) error {
	if !t.nested {
		if err := t.guard.commit(); err != nil {
			return err
		}
	}
	return t.Tx.Commit(ctx)
}

// Rollback implements pgx.Tx.
func (t stepTx) Rollback(ctx context.Context) error {
	if !t.nested {
		t.guard.rollback()
	}
	return t.Tx.Rollback(ctx)
}

// Exec implements pgx.Tx.
func (t stepTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.guard.statement(sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.Tx.Exec(ctx, sql, args...)
}

// Query implements pgx.Tx.
func (t stepTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.guard.statement(sql); err != nil {
		return failedRows{err: err}, err
	}
	return t.Tx.Query(ctx, sql, args...)
}

// QueryRow implements pgx.Tx.
func (t stepTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.guard.statement(sql); err != nil {
		return failedRows{err: err}
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

// Prepare implements pgx.Tx.
func (t stepTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.guard.statement(sql); err != nil {
		return nil, err
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// SendBatch implements pgx.Tx.
func (t stepTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		if err := t.guard.statement(q.SQL); err != nil {
			return failedBatch{err: err}
		}
	}
	return t.Tx.SendBatch(ctx, b)
}

// failedRows are the rows of a rejected statement.
type failedRows struct {
	pgx.Rows
	err error
}

func (r failedRows) Close()                                       {}
func (r failedRows) Err() error                                   { return r.err }
func (r failedRows) CommandTag() (tag pgconn.CommandTag)          { return tag }
func (r failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r failedRows) Next() bool                                   { return false }
func (r failedRows) Scan(...any) error                            { return r.err }
func (r failedRows) Values() ([]any, error)                       { return nil, r.err }
func (r failedRows) RawValues() [][]byte                          { return nil }
func (r failedRows) Conn() *pgx.Conn                              { return nil }

// failedBatch is the result of a rejected batch.
type failedBatch struct {
	pgx.BatchResults
	err error
}

func (b failedBatch) Exec() (tag pgconn.CommandTag, err error) { return tag, b.err }
func (b failedBatch) Query() (pgx.Rows, error)                 { return failedRows{err: b.err}, b.err }
func (b failedBatch) QueryRow() pgx.Row                        { return failedRows{err: b.err} }
func (b failedBatch) Close() error                             { return b.err }
func (b failedBatch) Tx() pgx.Tx                               { return nil }
