package sqlstmt

// Driver is a prepared statement of one connection. Parameters count from 1,
// columns from 0. Bindings stay from one use to the next.
type Driver interface {
	BindInt(i int, v int64) error
	BindNull(i int) error
	BindText(i int, v string) error
	// BindRawText and BindBlob may use v until they return only.
	BindRawText(i int, v []byte) error
	BindBlob(i int, v []byte) error
	Params() int
	Columns() int

	// Exec runs the statement to its end. A driver may put that off until an answer
	// is asked for; then this one returns the error.
	Exec() error
	// Changes returns how many rows the last Exec changed.
	Changes() (int, error)

	// Step steps to the next row; the first one runs the statement.
	Step() bool
	// Err says why Step returned false; nil: there are no more rows.
	Err() error
	// Reset ends the reading of rows.
	Reset() error
	// Int returns an integer column; 0 for NULL.
	Int(i int) int64
	// Raw returns the bytes of a text or blob, nil for NULL. They live until the
	// next Step or Reset.
	Raw(i int) []byte
	// Row sets vals to the whole row: int64, []byte or nil each.
	Row(vals []any) error
}
