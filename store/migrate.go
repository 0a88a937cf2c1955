package store

import "time"

// MigrationStatus is the status of one migration in a store.
type MigrationStatus struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: not applied
}
