package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/ncruces/go-sqlite3"
	sqlitedriver "github.com/ncruces/go-sqlite3/driver"
)

// DB returns a database/sql pool on the same database, for the user's own tables and for
// transactions that enqueue (Tx). Its transactions begin immediate: a transaction that reads
// first and writes later cannot fail half-way because of another connection's write. The pool
// is closed with the store.
//
// In memory a transaction also has its own snapshot, and there is one writer at a time, as in
// a file.
func (db *DB) DB() *sql.DB {
	db.userOnce.Do(func() { db.user = sql.OpenDB(connector{db}) })
	return db.user
}

// connector opens the connections of the user's pool. They are the driver's connections, with
// two functions by which the store recognizes them and works on them.
type connector struct{ db *DB }

func (c connector) Driver() driver.Driver { return &sqlitedriver.SQLite{} }

// uri returns the URI of the database for SQLite.
func (db *DB) uri() url.URL {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(db.name)}
	if db.memory {
		parsed, _ := url.Parse(db.name) // we built it
		u.Path, u.RawQuery = parsed.Path, parsed.RawQuery
	}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path // a Windows drive
	}
	if !db.memory {
		u.RawQuery = url.Values{"vfs": {conn.Layer(db.opts.vfs)}}.Encode()
	}
	return u
}

// address returns the URI as text.
func (db *DB) address() string {
	u := db.uri()
	return u.String()
}

// dsn returns the URI of the user's connections.
func (db *DB) dsn() string {
	u := db.uri()
	q := u.Query()
	q.Set("_txlock", "immediate")
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", db.opts.busy.Milliseconds()))
	q.Add("_pragma", "synchronous("+db.opts.sync.pragma()+")")
	if db.alone != nil {
		q.Add("_pragma", "journal_mode(persist)")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := (&sqlitedriver.SQLite{}).OpenConnector(c.db.dsn())
	if err != nil {
		return nil, err
	}
	opened, err := base.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", c.db.translate(err))
	}
	inner, ok := opened.(sqlitedriver.Conn)
	if !ok {
		_ = opened.Close()
		return nil, fmt.Errorf("the driver's connection is a %T", opened)
	}
	u := &userConn{Conn: inner, db: c.db, conn: conn.New(inner.Raw())}
	err = c.db.checkPlace() // it may be a connection to another file
	if err == nil {
		err = u.register()
	}
	if err != nil {
		_ = inner.Close()
		return nil, err
	}
	return u, nil
}

// userConn is a connection of the user's pool. The effects of enqueues on it are published
// when its transaction commits.
type userConn struct {
	sqlitedriver.Conn
	db       *DB
	conn     *conn.Conn
	pending  []*sqlstore.Effects
	tx       context.Context // of the open transaction; a scope, set by BeginTx
	end      func()          // releases the turn of the open transaction, or nil
	step     *stepGuard      // of the open transaction of a StepTx, or nil
	open     *commit.Holder  // the open transaction, or the query whose rows are read, or nil
	readOnly bool            // the open transaction was begun read-only
}

// The SQL functions of our connections.
const (
	fnToken = "weaver_connection" // returns the token of the DB
	fnCall  = "weaver_call"       // runs a function of this program on the connection
)

// noTransaction follows the token when the connection has no transaction.
const noTransaction = " idle"

func (u *userConn) register() error {
	u.Raw().CommitHook(func() bool { return u.step == nil || u.step.mayCommit() })
	u.Raw().RollbackHook(func() {
		if u.step != nil {
			u.step.undo()
		}
	})
	token := func(ctx sqlite3.Context, _ ...sqlite3.Value) {
		if u.Raw().GetAutocommit() {
			ctx.ResultText(u.db.token + noTransaction)
			return
		}
		ctx.ResultText(u.db.token)
	}
	if err := u.Raw().CreateFunction(fnToken, 0, sqlite3.DIRECTONLY, token); err != nil {
		return err
	}
	call := func(ctx sqlite3.Context, arg ...sqlite3.Value) {
		if err := u.db.calls.run(arg[0].Int64(), u); err != nil {
			ctx.ResultError(err)
		}
	}
	return u.Raw().CreateFunction(fnCall, 1, sqlite3.DIRECTONLY, call)
}

// Close implements driver.Conn.
func (u *userConn) Close() error {
	u.conn.Forget()
	err := u.Conn.Close()
	u.ended()
	return err
}

// ended records the end of the open transaction, if there is one.
func (u *userConn) ended() {
	u.pending, u.tx, u.step, u.readOnly = nil, nil, nil, false
	u.reads(nil, false)
	if u.end != nil {
		u.end()
		u.end = nil
	}
}

// reads records the current holder of a snapshot, or nil, and whether it keeps others from
// writing.
func (u *userConn) reads(h *commit.Holder, writes bool) {
	if u.open != nil {
		u.db.reads.remove(u.open)
	}
	if u.open = h; h != nil {
		u.db.reads.add(h, writes)
	}
}

// IsValid implements driver.Validator. database/sql calls it when the connection goes back to
// the pool, after closing its rows.
func (u *userConn) IsValid() bool {
	u.reads(nil, false)
	return true
}

// CheckNamedValue implements driver.NamedValueChecker.
func (u *userConn) CheckNamedValue(arg *driver.NamedValue) error {
	return u.Conn.(driver.NamedValueChecker).CheckNamedValue(arg)
}

// withTurn marks the context of the transaction of a StepTx, which has taken its turn. The
// value is its *stepGuard.
type withTurn struct{}

// BeginTx implements driver.ConnBeginTx. A transaction that may write waits for its turn, not
// for the database's lock.
func (u *userConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	u.ended()
	reads := opts.ReadOnly && opts.Isolation == driver.IsolationLevel(sql.LevelDefault)
	step, _ := ctx.Value(withTurn{}).(*stepGuard)
	what, turn := "a transaction of DB()", !reads
	if step != nil {
		what, turn = "a StepTx", false
	}
	h := commit.NewHolder(what, false)
	if turn {
		giveBack, err := u.db.writer.Turn(ctx, h)
		if err != nil {
			return nil, u.db.translate(err)
		}
		u.end = giveBack
	}
	err := u.db.checkPlace()
	if err != nil {
		u.ended()
		return nil, err
	}
	tx, err := u.Conn.BeginTx(ctx, opts)
	if err != nil {
		u.ended()
		return nil, err
	}
	u.tx, u.step, u.readOnly = ctx, step, opts.ReadOnly
	u.reads(h, !reads)
	return userTx{tx, u}, nil
}

// inTurn runs a statement that may write. Outside a transaction with the turn it waits for its
// own turn, not for the database's lock. It keeps the turn as long as the connection keeps the
// lock, for example after a statement BEGIN IMMEDIATE. A VACUUM takes no turn: it is long, and
// with INTO, as in a backup, it only reads.
func (u *userConn) inTurn(ctx context.Context, query string, statement func() error) error {
	if u.Raw().GetAutocommit() {
		if err := u.db.checkPlace(); err != nil {
			return err
		}
	}
	if u.end == nil && u.step == nil && !u.readOnly && !isVacuum(query) {
		h := commit.NewHolder("a statement of DB()", false)
		giveBack, err := u.db.writer.Turn(ctx, h)
		if err != nil {
			return u.db.translate(err)
		}
		u.end = giveBack
	}
	err := u.step.watch(statement)
	if u.end != nil && u.Raw().TxnState("main") != sqlite3.TXN_WRITE { // it ended, or a full disk or its own ROLLBACK ended it
		u.end()
		u.end = nil
	}
	return err
}

func isVacuum(query string) bool {
	const verb = "VACUUM"
	query = strings.TrimSpace(query)
	return len(query) >= len(verb) && strings.EqualFold(query[:len(verb)], verb)
}

type userTx struct {
	driver.Tx
	u *userConn
}

// Commit commits and notifies listeners of the enqueued tasks.
func (t userTx) Commit() error {
	if err := t.u.db.checkPlace(); err != nil {
		return errors.Join(err, t.Rollback())
	}
	pending := t.u.pending
	t.u.conn.Reset()
	err := t.Tx.Commit()
	if refused := t.u.step.refused(); err != nil && refused != nil {
		err = refused
	}
	t.u.ended()
	if err != nil {
		return err
	}
	for _, fx := range pending {
		t.u.db.writer.Apply(fx)
	}
	return nil
}

// Rollback implements driver.Tx.
func (t userTx) Rollback() error {
	t.u.conn.Reset()
	err := t.u.step.watch(t.Tx.Rollback)
	t.u.ended()
	return err
}

// callTable holds functions to run inside the SQL function weaver_call. Only this way onto the
// connection of a *sql.Tx respects database/sql's locks, so that a rollback by an ended
// context waits for the function.
type callTable struct {
	mu    sync.Mutex
	next  int64
	calls map[int64]func(*userConn) error
}

func (t *callTable) add(fn func(*userConn) error) (id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = make(map[int64]func(*userConn) error)
	}
	t.next++
	t.calls[t.next] = fn
	return t.next
}

func (t *callTable) remove(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, id)
}

func (t *callTable) run(id int64, u *userConn) error {
	t.mu.Lock()
	fn := t.calls[id]
	t.mu.Unlock()
	if fn == nil {
		return errors.New("weaver_call is not for users")
	}
	return fn(u)
}
