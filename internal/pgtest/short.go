package pgtest

import "testing"

// InShort returns t for a test that runs also with go test -short. All other tests with a
// database are skipped then.
func InShort(t testing.TB) testing.TB { return inShort{t} }

type inShort struct{ testing.TB }

// skipShort skips a test that go test -short leaves out.
func skipShort(t testing.TB) {
	t.Helper()
	if _, ok := t.(inShort); ok {
		return
	}
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
}
