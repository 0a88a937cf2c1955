package sqlstore

import "github.com/goweaver/weaver/task"

// Locks are what a database with several writers locks until the end of a
// transaction, in an order that all transactions keep: what an operation will
// decide on, before it reads it. Where one transaction writes at a time they do
// nothing.
//
// Locks that an operation finds out about only later are taken out of order. Then
// two operations may wait for each other; the database ends one of them, and it
// runs again.
type Locks interface {
	// Tasks locks tasks, and before them their jobs and their concurrency keys.
	// fresh says that others may have changed them since they were read.
	Tasks(t *Tx, ids ...task.ID) (fresh bool, err error)
	// Job locks a job.
	Job(t *Tx, id *task.ID) error
	// Key locks a concurrency key, also one that has no row yet.
	Key(t *Tx, key string) error
	// Name locks a name, which stands for what does not exist yet.
	Name(t *Tx, name string) error
	// Graph lets no other transaction add edges between tasks that exist.
	Graph(t *Tx) error
	// Passes reports whether claims pass over rows that others have locked.
	Passes() bool
}

// NoLocks are those of a database that one transaction writes at a time.
type NoLocks struct{}

// Tasks implements Locks.
func (NoLocks) Tasks(*Tx, ...task.ID) (fresh bool, err error) { return false, nil }

// Job implements Locks.
func (NoLocks) Job(*Tx, *task.ID) error { return nil }

// Key implements Locks.
func (NoLocks) Key(*Tx, string) error { return nil }

// Name implements Locks.
func (NoLocks) Name(*Tx, string) error { return nil }

// Graph implements Locks.
func (NoLocks) Graph(*Tx) error { return nil }

// Passes implements Locks.
func (NoLocks) Passes() bool { return false }

// job locks and reads a job; nil if there is none.
func (t *Tx) job(id *task.ID) (*task.Job, error) {
	if err := t.db.Job(t, id); err != nil {
		return nil, err
	}
	return t.View.job(id)
}

// keyRow locks and reads a key.
func (t *Tx) keyRow(key string) (keyRow, error) {
	if err := t.db.Key(t, key); err != nil {
		return keyRow{}, err
	}
	return t.View.keyRow(key)
}
