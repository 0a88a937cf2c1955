package sqlstmt

// Driver is a prepared statement of one connection. Parameters count from 1,
// columns from 0. Bindings stay from one use to the next.
type Driver interface {
	BindInt(i int, v int64) error
	BindNull(i int) error
	BindText(i int, v string) error
	// BindRawText and BindBlob must not keep v after they return.
	BindRawText(i int, v []byte) error
	BindBlob(i int, v []byte) error
	Params() int
	Columns() int

	// Exec runs the statement to its end. A driver may postpone it until a result is
	// requested; then that request returns the error.
	Exec() error
	// Changes returns the number of rows that the last Exec changed.
	Changes() (int, error)

	// Step steps to the next row. The first Step runs the statement.
	Step() bool
	// Err returns the reason why Step returned false; nil: there are no more rows.
	Err() error
	// Reset ends the reading of rows.
	Reset() error
	// Int returns an integer column; 0 for NULL.
	Int(i int) int64
	// Raw returns the bytes of a text or blob, nil for NULL. They are valid until the next
	// Step or Reset.
	Raw(i int) []byte
	// Row sets vals to the whole row, each an int64, []byte or nil.
	Row(vals []any) error
}
