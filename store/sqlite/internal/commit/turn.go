package commit

import "context"

// Turn waits for the process's turn to write, for a transaction on another
// connection, and returns the function that gives it back, which must be
// called once. It returns the cause of ctx when that ends first.
//
// Waiting for the turn is fair and exact, where waiting for SQLite's lock is
// polling. When the turn is given back, a group that waits is next, and its
// heartbeats are first.
func (w *Writer) Turn(ctx context.Context) (giveBack func(), err error) {
	select {
	case w.turn <- struct{}{}:
		return func() { <-w.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
