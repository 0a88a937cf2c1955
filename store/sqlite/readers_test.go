package sqlite_test

import (
	"testing"

	"github.com/goweaver/weaver/store"
)

// A reader's connection cannot write, and so never holds anybody's lock.
func TestReadersCannotWrite(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	err := f.db.Read(t.Context(), func(exec func(sql string) error) error { return exec("DELETE FROM tasks") })
	says(t, err, store.ErrReadOnly)
}
