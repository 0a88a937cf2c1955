package conn

import (
	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/sqlstmt"
)

// stmt implements sqlstmt.Driver.
type stmt struct {
	conn   *sqlite3.Conn
	raw    *sqlite3.Stmt
	handle *sqlstmt.Stmt
}

var _ sqlstmt.Driver = (*stmt)(nil)

func (s *stmt) BindInt(i int, v int64) error      { return s.raw.BindInt64(i, v) }
func (s *stmt) BindNull(i int) error              { return s.raw.BindNull(i) }
func (s *stmt) BindText(i int, v string) error    { return s.raw.BindText(i, v) }
func (s *stmt) BindRawText(i int, v []byte) error { return s.raw.BindRawText(i, v) }
func (s *stmt) BindBlob(i int, v []byte) error    { return s.raw.BindBlob(i, v) }
func (s *stmt) Params() int                       { return s.raw.BindCount() }
func (s *stmt) Columns() int                      { return s.raw.ColumnCount() }
func (s *stmt) Exec() error                       { return s.raw.Exec() }
func (s *stmt) Changes() (int, error)             { return int(s.conn.Changes()), nil }
func (s *stmt) Step() bool                        { return s.raw.Step() }
func (s *stmt) Err() error                        { return s.raw.Err() }
func (s *stmt) Reset() error                      { return s.raw.Reset() }
func (s *stmt) Int(i int) int64                   { return s.raw.ColumnInt64(i) }
func (s *stmt) Raw(i int) []byte                  { return s.raw.ColumnRawBlob(i) }
func (s *stmt) Row(vals []any) error              { return s.raw.ColumnsRaw(vals...) }
