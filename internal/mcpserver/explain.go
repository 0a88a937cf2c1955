package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// shown is an error whose text may be shown to the caller of a tool.
type shown struct{ error }

func (s shown) Unwrap() error { return s.error }

// Said marks an error whose text is meant for the caller of a tool.
func Said(err error) error { return shown{err} }

func say(format string, args ...any) error { return shown{fmt.Errorf(format, args...)} }

// failures are errors of the store. Their texts may name folders, hosts and users, so only the name of the error is
// shown.
var failures = []error{
	store.ErrUnavailable, store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrNotMigrated, store.ErrNewerSchema,
	store.ErrNotDatabase, store.ErrForeignDatabase, store.ErrUnknown, store.ErrClosed, blob.ErrNoBucket, store.ErrOtherBucket,
}

// mistakes are errors that a caller can avoid, with a suggestion for each.
var mistakes = []struct {
	err  error
	what string
}{
	{weaver.ErrNotFound, "list_tasks lists the tasks"},
	{weaver.ErrState, "why explains the state of the task and what can be done"},
	{store.ErrChanged, "the task was changed meanwhile: look at it again with show_task"},
	{weaver.ErrInvalidInput, ""},
	{weaver.ErrInvalidOption, ""},
	{ops.ErrInvalidQuery, ""},
	{store.ErrBadCursor, ""},
	{weaver.ErrTooLarge, ""},
	{store.ErrLimit, ""},
	{store.ErrRefused, ""},
	{weaver.ErrConflict, ""},
	{weaver.ErrForgotten, ""},
	{weaver.ErrValuesDropped, ""},
	{store.ErrBlobGone, ""},
}

// explained returns the answer of a tool for an error, with a suggestion. It logs an unknown error and hides its
// text.
func (t tools) explained(ctx context.Context, tool string, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	for _, failure := range failures {
		if is(failure) {
			t.Logger.ErrorContext(ctx, "a tool failed", "tool", tool, "error", err)
			return fmt.Errorf("%w: the server's log says more; check the state before you repeat it", failure)
		}
	}
	for _, known := range mistakes {
		switch {
		case !is(known.err):
		case known.what == "":
			return err
		default:
			return fmt.Errorf("%w: %s", err, known.what)
		}
	}
	if _, ok := errors.AsType[shown](err); ok {
		return err
	}
	t.Logger.ErrorContext(ctx, "a tool failed", "tool", tool, "error", err)
	return errors.New("the server failed: its log has the reason; check the state before you repeat it")
}
