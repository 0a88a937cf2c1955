package sqlite

import (
	"fmt"
	"sync"

	"github.com/goweaver/weaver/store"
)

// stepGuard keeps the function of a StepTx from ending the transaction itself,
// which would keep its effects without the step's value, and so repeat them.
// While the function runs every commit on its connection is turned into a
// rollback, whichever way it was asked for.
type stepGuard struct {
	mu         sync.Mutex
	returned   bool // the function has; from then on the transaction is ours to end
	committed  bool // a commit was refused
	rolledBack bool // without an error of the database
	undone     int  // rollbacks that the database told of
}

// mayCommit is asked by the database before each commit on the connection.
func (g *stepGuard) mayCommit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.returned {
		g.committed = true
	}
	return g.returned
}

// undo notes a rollback, which an error of the database may have caused.
func (g *stepGuard) undo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.undone++
}

// watch runs a statement of the function. A rollback without an error is the
// function's own.
func (g *stepGuard) watch(run func() error) error {
	if g == nil {
		return run()
	}
	g.mu.Lock()
	before := g.undone
	g.mu.Unlock()
	err := run()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.undone > before && !g.returned {
		g.rolledBack = true
	}
	return err
}

// end is called when the function has returned, with its error. It returns
// store.ErrStepTxEnded if the function ended the transaction itself. One that
// rolls back and returns an error says the same thing twice.
func (g *stepGuard) end(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned = true
	how := ""
	switch {
	case g.committed:
		how = "it committed, which was refused"
	case g.rolledBack && err == nil:
		how = "it rolled back and returned no error"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s, and nothing of it was kept; leave both to StepTx: return nil to commit, an error to roll back", store.ErrStepTxEnded, how)
}

// refused returns the error of a commit that was refused, nil if none was.
func (g *stepGuard) refused() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.committed && !g.returned {
		return fmt.Errorf("commit: %w: return from it instead", store.ErrStepTxEnded)
	}
	return nil
}
