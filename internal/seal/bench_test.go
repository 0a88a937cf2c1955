package seal_test

import (
	"encoding/json"
	"testing"

	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/task"
)

// A small task's value is sealed and opened once.
func BenchmarkSealAndOpen(b *testing.B) {
	s := sealer(b, keys(b, "k1")...)
	place := seal.InputOf(task.NewIDs(nil).New(), "acme.test.seal.v1")
	for b.Loop() {
		sealed, err := s.Seal(place, json.RawMessage(`{"n":1}`))
		if err != nil {
			b.Fatal(err)
		}
		s.Open(place, sealed)
	}
}
