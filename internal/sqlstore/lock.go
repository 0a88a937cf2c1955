package sqlstore

import "github.com/goweaver/weaver/task"

// Locks locks rows until the end of a transaction, in a database with several writers. An
// operation locks rows before it reads them for a decision, in the same order in all
// transactions. In a database with one writer the methods do nothing.
//
// Locks that an operation discovers later are taken out of order. Then two operations may wait
// for each other; the database ends one of them, and it runs again.
type Locks interface {
	// Tasks locks tasks, and before them their jobs and their concurrency keys. fresh reports
	// that other transactions may have changed them since they were read.
	Tasks(t *Tx, ids ...task.ID) (fresh bool, err error)
	// Job locks a job.
	Job(t *Tx, id *task.ID) error
	// Key locks a concurrency key, with or without a row.
	Key(t *Tx, key string) error
	// Name locks a name that represents a row to be inserted.
	Name(t *Tx, name string) error
	// TryName is Name without a wait: it reports whether it has the lock.
	TryName(t *Tx, name string) (bool, error)
	// Graph keeps other transactions from adding edges between existing tasks.
	Graph(t *Tx) error
	// Passes reports whether claims skip rows locked by other transactions.
	Passes() bool
}

// NoLocks implements Locks for a database with one writer.
type NoLocks struct{}

// Tasks implements Locks.
func (NoLocks) Tasks(*Tx, ...task.ID) (fresh bool, err error) { return false, nil }

// Job implements Locks.
func (NoLocks) Job(*Tx, *task.ID) error { return nil }

// Key implements Locks.
func (NoLocks) Key(*Tx, string) error { return nil }

// Name implements Locks.
func (NoLocks) Name(*Tx, string) error { return nil }

// TryName implements Locks.
func (NoLocks) TryName(*Tx, string) (bool, error) { return true, nil }

// Graph implements Locks.
func (NoLocks) Graph(*Tx) error { return nil }

// Passes implements Locks.
func (NoLocks) Passes() bool { return false }

// job locks and reads a job, or returns nil.
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
