package store

import (
	"context"
	"time"
)

// Migrator is implemented by stores that keep a schema of their own, which has
// to be created before the store can be used: [Reader.Ready] says
// [ErrNotMigrated] until then.
type Migrator interface {
	// Migrate brings the schema up to this program's version. It is
	// idempotent, and any number of processes may call it at once. Errors:
	// ErrNewerSchema, ErrForeignDatabase, ErrReadOnly, ErrBusy.
	Migrate(ctx context.Context) error

	// MigrationStatus lists the migrations of this program, by version, and
	// after them those of the store that this program does not know. It writes
	// nothing.
	MigrationStatus(ctx context.Context) ([]MigrationStatus, error)

	// MigrationSQL returns the whole schema as a script, for review. It needs
	// no open store.
	MigrationSQL() string
}

// MigrationStatus is one migration, as a store has it.
type MigrationStatus struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: not applied
}
