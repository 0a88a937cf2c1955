package cli_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
)

// refusing is a store that rejects writes.
type refusing struct {
	*memstore.Store
	err error
}

func (r refusing) Writable(context.Context) error { return r.err }

func TestDoctorAsksWhetherTheStoreCanBeWritten(t *testing.T) {
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // in memory
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		store store.Store
		want  error
	}{
		"one that cannot test it": {memstore.New(), nil},
		"one that takes it":       {db, nil},
		"a full disk":             {refusing{memstore.New(), store.ErrFull}, store.ErrFull},
		"another writer":          {refusing{memstore.New(), store.ErrBusy}, nil},
	} {
		if err := cli.Writable(t.Context(), c.store); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
