package conn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/task"
)

// Mode is the way to reach the server.
type Mode uint8

// The modes. A pooler may run each transaction in another session of the server, so through a
// pooler no state is kept in a session: neither statement names nor settings.
const (
	ModeAuto   Mode = iota // detected for each connection
	ModeDirect             // each connection has its own session of the server
	ModePooled             // through a transaction pooler
)

// Settings are the shared settings of a store's connections. Zero values are the defaults.
type Settings struct {
	Schema           string           // of the tables; "weaver"
	StatementTimeout time.Duration    // the server ends a longer statement; 30 s
	LockTimeout      time.Duration    // and a statement that waits longer for a lock; 10 s
	IdleTimeout      time.Duration    // and a transaction that is idle for longer; 1 min
	RoundTimeout     time.Duration    // maximum wait for an answer; the statement's timeout plus 15 s
	Mode             Mode             // the way to reach the server
	PlansLast        time.Duration    // maximum age of a session's plans; 5 s
	Clock            func() time.Time // the time of a transaction; nil: the server's clock
	Redone           func(err error)  // called with the reason before a transaction runs again; may be nil
	Dial             pgconn.DialFunc  // nil notices a lost peer after 30 s
}

// common is the shared state of a store's connections.
type common struct {
	Settings
	key       string   // of a Conn in the custom data of a *pgconn.PgConn
	path      string   // the search_path
	described sync.Map // text → its *description
}

var commons atomic.Int64

func newCommon(s Settings) *common {
	setDefault(&s.StatementTimeout, 30*time.Second)
	setDefault(&s.LockTimeout, 10*time.Second)
	setDefault(&s.IdleTimeout, time.Minute)
	setDefault(&s.PlansLast, plansLast)
	setDefault(&s.RoundTimeout, s.StatementTimeout+15*time.Second)
	if s.Schema == "" {
		s.Schema = "weaver"
	}
	if s.Dial == nil {
		// By default the system waits for hours for a silent peer.
		alive := net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}
		s.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: alive}).DialContext
	}
	// Without pg_temp at the end, a temporary table would hide ours.
	path := `"` + strings.ReplaceAll(s.Schema, `"`, `""`) + `", pg_temp`
	return &common{Settings: s, key: fmt.Sprintf("weaver/%d", commons.Add(1)), path: path}
}

const dialTimeout = 10 * time.Second

func setDefault(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

// adopt sets the settings of our own connections in a configuration.
func (m *common) adopt(cfg *pgconn.Config) {
	cfg.DialFunc = m.Dial
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = dialTimeout
	}
	if cfg.RuntimeParams == nil {
		cfg.RuntimeParams = make(map[string]string)
	}
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "weaver"
	}
}

// statementName returns the name of a prepared statement. Equal texts have equal names on all
// connections.
func (m *common) statementName(sql string) string {
	sum := sha256.Sum256([]byte(m.Schema + "\x00" + sql))
	return "w" + hex.EncodeToString(sum[:12])
}

// Conn is one connection with its prepared statements.
type Conn struct {
	*common
	pg    *pgconn.PgConn
	lease *pgxpool.Conn // in a pool: the connection to release
	own   bool          // the connection is not shared
	stmts map[string]*Stmt

	handles map[string]*sqlstmt.Stmt
	cache   *sqlstmt.Cache

	asked  bool // the mode was detected
	direct bool
	kept   bool // the session has the settings

	planned time.Time // begin of the time for which it keeps plans

	ctx    context.Context // of the transaction
	pipe   *pgconn.Pipeline
	cancel context.CancelFunc // of pipe's context
	queue  []*run             // requests sent into pipe
	size   int                // approximate bytes of pipe that are not flushed
	failed *run               // the run at which the last round trip failed
	rounds int

	txState
}

// Connect opens a connection that is not in a pool.
func Connect(ctx context.Context, cfg *pgconn.Config, s Settings) (*Conn, error) {
	m := newCommon(s)
	cfg = cfg.Copy()
	m.adopt(cfg)
	pg, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c := m.of(pg)
	c.own = true
	if err := c.settle(ctx); err != nil {
		_ = c.Close() // the first error has the cause
		return nil, err
	}
	return c, nil
}

// of returns the Conn of a connection, the same one for the connection's lifetime.
func (m *common) of(pg *pgconn.PgConn) *Conn {
	if c, ok := pg.CustomData()[m.key].(*Conn); ok {
		return c
	}
	c := &Conn{common: m, pg: pg, ctx: context.Background(), stmts: make(map[string]*Stmt), handles: make(map[string]*sqlstmt.Stmt), cache: sqlstmt.NewCache()}
	pg.CustomData()[m.key] = c
	return c
}

// Close closes the connection.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	return c.pg.Close(ctx)
}

// PgConn returns the driver's connection. It may be used while nothing is queued: see
// [Conn.Flush].
func (c *Conn) PgConn() *pgconn.PgConn { return c.pg }

// Stmt returns the handle of a statement. The caller must not request it again while it reads
// its rows. If the text cannot be prepared, the first use returns the error.
func (c *Conn) Stmt(sql string) *sqlstmt.Stmt {
	raw, err := c.statement(sql)
	if err != nil {
		return sqlstmt.Failed(err)
	}
	h := c.handles[sql]
	if h == nil {
		h = sqlstmt.New(raw, c.cache)
		c.handles[sql] = h
	}
	return h.Again()
}

// StmtIDs is Stmt with a list of IDs bound to a parameter.
func (c *Conn) StmtIDs(sql string, i int, ids []task.ID) *sqlstmt.Stmt {
	st, arrays := c.StmtArrays(sql)
	if arrays != nil {
		list := arrays.Array(i)
		for j := range ids {
			list.Bytes(ids[j][:])
		}
	}
	return st
}

// StmtArrays is Stmt that also returns the statement for binding its arrays; nil if it cannot
// be prepared.
func (c *Conn) StmtArrays(sql string) (*sqlstmt.Stmt, *Stmt) { return c.Stmt(sql), c.stmts[sql] }

// Cache returns the connection's cache of row values.
func (c *Conn) Cache() *sqlstmt.Cache { return c.cache }

// Direct reports whether the connection has its own session of the server.
func (c *Conn) Direct() bool { return c.direct }

// Rounds returns the number of round trips of the connection.
func (c *Conn) Rounds() int { return c.rounds }

// settle detects the mode, once per connection, and sets the settings in the session of our
// own connection.
func (c *Conn) settle(ctx context.Context) error {
	mine := c.own && c.pg.TxStatus() == 'I' // in a user's transaction the settings would end with it
	if c.asked && (c.kept || !c.direct || !mine) {
		return nil
	}
	direct := c.Mode == ModeDirect
	if c.asked { // a user had it since
		direct = c.direct
	} else if c.Mode == ModeAuto {
		// A pooler shows its own port to the server, and its own process IDs to its clients.
		row, err := c.ask(ctx, "SELECT inet_client_port()::text, pg_backend_pid()::text")
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(c.pg.Conn().LocalAddr().String())
		direct = port != "" && row[0] == port && row[1] == fmt.Sprint(c.pg.PID())
	}
	if direct && mine {
		sql := "SELECT set_config('idle_in_transaction_session_timeout', $4, false), set_config('jit', 'off', false), " + setPlanner() + ", " +
			"set_config('search_path', $1, false), set_config('statement_timeout', $2, false), set_config('lock_timeout', $3, false)"
		if _, err := c.ask(ctx, sql, c.path, millis(c.StatementTimeout), millis(c.LockTimeout), millis(c.IdleTimeout)); err != nil {
			return err
		}
		c.kept = true
	}
	c.asked, c.direct = true, direct
	return nil
}

// ask returns the only row of a query, as texts.
func (c *Conn) ask(ctx context.Context, sql string, args ...string) ([]string, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	bounded, cancel := context.WithTimeout(ctx, c.RoundTimeout)
	defer cancel()
	res := c.pg.ExecParams(bounded, sql, values, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, c.explain(ctx, res.Err)
	}
	if len(res.Rows) != 1 {
		return nil, fmt.Errorf("the server answered %d rows instead of one", len(res.Rows))
	}
	row := make([]string, len(res.Rows[0]))
	for i, v := range res.Rows[0] {
		row[i] = string(v)
	}
	return row, nil
}

// millis formats a duration for the server's settings. The minimum is 1, because 0 means no
// limit.
func millis(d time.Duration) string { return fmt.Sprint(max(1, d.Milliseconds())) }
