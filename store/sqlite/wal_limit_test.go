package sqlite_test

import "testing"

// The writer truncates the log to 64 MiB when it starts over.
func TestTheWriterLimitsTheLog(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	got, err := f.db.WriterPragma(t.Context(), "journal_size_limit")
	if want := "67108864"; got != want || err != nil {
		t.Errorf("journal_size_limit = %s, %v; want %s", got, err, want)
	}
}
