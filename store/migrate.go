package store

import "time"

// MigrationStatus is one migration, as a store has it.
type MigrationStatus struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: not applied
}
