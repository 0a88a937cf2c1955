package sqlite

import (
	"errors"
	"fmt"

	"github.com/goweaver/weaver/store/sqlite/internal/commit"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

// translate converts errors of the driver and the queue to errors of the port, with the file's
// path and an instruction. It leaves errors of the port unchanged. It does not name the
// caller's operation: clients of the store do.
func (db *DB) translate(err error) error {
	if err == nil {
		return nil
	}
	var newer *migrate.NewerError
	if errors.As(err, &newer) {
		return newer.In(db.path)
	}
	advice, kind := classify(err)
	switch {
	case kind == nil:
		return err
	case errors.Is(kind, store.ErrClosed): // the queue's own error says the same
		return fmt.Errorf("%s: %w", db.path, kind)
	case advice == "":
		return fmt.Errorf("%s: %w: %w", db.path, kind, err)
	}
	return fmt.Errorf("%s: %w (%s): %w", db.path, kind, advice, err)
}

func classify(err error) (advice string, kind error) {
	var held *commit.HeldError
	switch {
	case errors.As(err, &held):
		return "commit it or roll it back; inside it, enqueue with InTx", store.ErrBusy
	case errors.Is(err, batch.ErrTaken):
		return "", store.ErrUnknown
	case errors.Is(err, batch.ErrClosed), errors.Is(err, conn.ErrClosed):
		return "", store.ErrClosed
	}
	return conn.Classify(err)
}
