package sqlite

import (
	"fmt"
	"sync"

	"github.com/goweaver/weaver/store"
)

// stepGuard keeps the function of a StepTx from ending the transaction itself. That would keep
// its effects without the step's value, and so repeat them. While the function runs, every
// commit on its connection becomes a rollback, whichever way it was requested.
type stepGuard struct {
	mu         sync.Mutex
	returned   bool // the function has returned; from then on we end the transaction
	committed  bool // a commit was refused
	rolledBack bool // without an error of the database
	undone     int  // rollbacks reported by the database
}

// mayCommit is called by the database before each commit on the connection.
func (g *stepGuard) mayCommit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.returned {
		g.committed = true
	}
	return g.returned
}

// undo records a rollback, which an error of the database may have caused.
func (g *stepGuard) undo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.undone++
}

// watch runs a statement of the function. A rollback without an error is the function's own.
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

// end is called with the function's error when it has returned. It returns
// store.ErrStepTxEnded if the function ended the transaction itself, unless the function
// rolled back and returned an error.
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

// refused returns the error of a refused commit, or nil.
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
