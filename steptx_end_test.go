package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A StepTx whose function ends the transaction itself would repeat its effects. It fails at once and
// leaves no effects.
func TestStepTxThatEndsItsTransaction(t *testing.T) {
	typ := weaver.Define[string, string]("engine.steptx.ends.v1")
	child := weaver.Define[string, string]("engine.steptx.endschild.v1")
	exec := func(ctx context.Context, tx *sql.Tx, statements ...string) error {
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	errOwn := errors.New("own")
	for name, c := range map[string]struct {
		end  func(ctx context.Context, tx *sql.Tx) error
		word string
	}{
		"commits":                   {func(_ context.Context, tx *sql.Tx) error { return tx.Commit() }, "committed"},
		"commits and says no word":  {func(_ context.Context, tx *sql.Tx) error { _ = tx.Commit(); return nil }, "committed"},
		"commits and fails":         {func(_ context.Context, tx *sql.Tx) error { return errors.Join(tx.Commit(), errOwn) }, "committed"},
		"commits and panics":        {func(_ context.Context, tx *sql.Tx) error { _ = tx.Commit(); panic("boom") }, "committed"},
		"commits by SQL":            {func(ctx context.Context, tx *sql.Tx) error { return exec(ctx, tx, "COMMIT") }, "committed"},
		"ends by SQL and goes on":   {func(ctx context.Context, tx *sql.Tx) error { _ = exec(ctx, tx, "END"); return addUser(ctx, tx, "more") }, "committed"},
		"commits and begins by SQL": {func(ctx context.Context, tx *sql.Tx) error { _ = exec(ctx, tx, "COMMIT; BEGIN"); return nil }, "committed"},
		"commits, begins, and again": {func(ctx context.Context, tx *sql.Tx) error {
			_ = exec(ctx, tx, "COMMIT")
			return exec(ctx, tx, "BEGIN")
		}, "committed"},
		"commits by a statement": {func(ctx context.Context, tx *sql.Tx) error {
			st, err := tx.PrepareContext(ctx, "COMMIT")
			if err == nil {
				_, err = st.ExecContext(ctx)
			}
			return err
		}, "committed"},
		"commits by a query": {func(ctx context.Context, tx *sql.Tx) error {
			_ = tx.QueryRowContext(ctx, "COMMIT").Scan(new(any))
			return nil
		}, "committed"},
		"rolls back":                  {func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() }, "rolled"},
		"rolls back by SQL":           {func(ctx context.Context, tx *sql.Tx) error { return exec(ctx, tx, "ROLLBACK") }, "rolled"},
		"rolls back, and begins":      {func(ctx context.Context, tx *sql.Tx) error { return exec(ctx, tx, "ROLLBACK", "BEGIN IMMEDIATE") }, "rolled"},
		"rolls back in a longer text": {func(ctx context.Context, tx *sql.Tx) error { return exec(ctx, tx, "ROLLBACK; BEGIN") }, "rolled"},
		"rolls back and writes": {func(ctx context.Context, tx *sql.Tx) error {
			_ = exec(ctx, tx, "ROLLBACK")
			return addUser(ctx, tx, "more")
		}, "itself"},
	} {
		inDB(t, name, func(fx *fixture, db *sqlite.DB) {
			ran := 0
			fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
				out, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (string, error) {
					ran++
					if _, err := child.Enqueue(ctx, weaver.InStepTx(ctx), in); err != nil {
						return "", err
					}
					return in, errors.Join(addUser(ctx, tx, in), c.end(ctx, tx))
				})
				wantError(fx, err, store.ErrStepTxEnded)
				return out, nil // swallowed on purpose: the mistake must still be reported
			}))
			h := enqueue(fx, typ, "ann")
			te := failure(fx, h)
			wantError(fx, te, nil, `step "save"`, c.word, "itself", "return")
			equal(fx, "kind", te.Kind, task.KindHandler)
			equal(fx, "failed step", te.FailedStep, "save")
			equal(fx, "runs of the step", ran, 1)
			equal(fx, "attempts", te.Attempts, 1)
			equal(fx, "users", users(fx, db), 0)
			list, _, err := child.List(fx.Context(), fx.client, weaver.Filter{})
			fx.must(err)
			equal(fx, "tasks enqueued in the step", len(list), 0)
			for _, s := range fx.history(h.ID()).Steps {
				equal(fx, "the step is recorded as", s.State, task.StepFailed)
			}
			fx.must(addInOwnTx(fx, db)) // the connection is usable again
		})
	}

	inDB(t, "a rollback before an error is a failure like any other", func(fx *fixture, db *sqlite.DB) {
		ran := 0
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (string, error) {
				if ran++; ran < 3 {
					defer func() { _ = tx.Rollback() }()
					return "", errOwn
				}
				return in, addUser(ctx, tx, in)
			})
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "ann")), "ann")
		equal(fx, "runs of the step", ran, 3)
		equal(fx, "users", users(fx, db), 1)
	})
}

// addInOwnTx writes in the user's own transaction.
func addInOwnTx(fx *fixture, db *sqlite.DB) error {
	tx, err := db.DB().BeginTx(fx.Context(), nil)
	if err != nil {
		return err
	}
	return errors.Join(addUser(fx.Context(), tx, "own"), tx.Commit())
}
