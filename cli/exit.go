package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitStore  = 3
)

// exitError adds an exit code and advice to an error.
type exitError struct {
	code   int
	err    error
	advice string // may be ""
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// badInput returns an error about the command line or an object that it names.
func badInput(advice, format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...), advice: advice}
}

// badStore returns an error about a store that cannot be used.
func badStore(advice, format string, args ...any) error {
	return &exitError{code: exitStore, err: fmt.Errorf(format, args...), advice: advice}
}

// usageError converts kong's error about the command line.
func usageError(app App, err error) error {
	help := app.Name + " --help"
	var perr *kong.ParseError
	if errors.As(err, &perr) && perr.Context != nil {
		if cmd := perr.Context.Selected(); cmd != nil {
			help = cmd.FullPath() + " --help"
		}
	}
	if said := urlPassword.ReplaceAllString(err.Error(), "${1}xxxxx@"); said != err.Error() {
		err = errors.New(said)
	}
	return badInput(fmt.Sprintf("Run `%s` for the usage.", help), "%w", err)
}

// urlPassword matches the password of a URL in an argument other than the store.
var urlPassword = regexp.MustCompile(`([A-Za-z]+://[^\s:@/]*:)\S*@`)

// storeErrors are errors that no change of the command line fixes.
var storeErrors = []error{
	store.ErrUnavailable, store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrNotDatabase, store.ErrForeignDatabase,
	store.ErrNotMigrated, store.ErrNewerSchema, store.ErrUnknown, store.ErrClosed,
}

// inputErrors are errors that the user can avoid by another request.
var inputErrors = []error{store.ErrNotFound, store.ErrState, store.ErrChanged, store.ErrBadCursor, weaver.ErrInvalidOption, weaver.ErrInvalidSchedule, ops.ErrInvalidQuery, store.ErrRefused, store.ErrOtherBucket, blob.ErrNoBucket, order.ErrNotFound, order.ErrState, order.ErrConflict, order.ErrInDoubt}

// exitCode returns the exit code of the process for err.
func exitCode(err error) int {
	is := func(target error) bool { return errors.Is(err, target) }
	var ee *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &ee):
		return ee.code
	case slices.ContainsFunc(storeErrors, is):
		return exitStore
	case slices.ContainsFunc(inputErrors, is):
		return exitUsage
	}
	return exitFailed
}

// advice returns a suggestion for an error. It returns "" if the error's text has one or no suggestion is known.
// command formats a command line.
func advice(command func(args ...string) string, err error) string {
	var ee *exitError
	if errors.As(err, &ee) {
		return ee.advice
	}
	for _, known := range []struct {
		err  error
		text string
	}{
		{store.ErrNotFound, fmt.Sprintf("Check --store and --namespace; `%s` and `%s` list what is there.", command("task", "ls"), command("job", "ls"))},
		{order.ErrNotFound, fmt.Sprintf("Check --store and --namespace; `%s` lists the orders.", command("order", "ls"))},
		{order.ErrInDoubt, fmt.Sprintf("Ask the partner; `%s` explains the state of an order and what can be done.", command("order", "show", "KEY"))},
		{order.ErrState, fmt.Sprintf("`%s` explains the state of an order and what can be done.", command("order", "show", "KEY"))},
		{order.ErrConflict, "Send the first request unchanged, or this one with a new key."},
		{store.ErrState, fmt.Sprintf("`%s` explains the state of a task and what can be done.", command("why", "ID"))},
		{store.ErrChanged, fmt.Sprintf("`%s` explains the present state of a task.", command("why", "ID"))},
		{store.ErrBadCursor, "Pass the cursor of the page before to --after, with the same filters."},
		{store.ErrNotMigrated, fmt.Sprintf("Run `%s`.", command("migrate", "up"))},
		{store.ErrNewerSchema, fmt.Sprintf("`%s` shows the versions.", command("migrate", "status"))},
		{store.ErrBusy, "Another process has been writing for a long time: look for an open transaction, then try again."},
		{store.ErrUnknown, "The outcome is unknown: check the state before you repeat it."},
		{context.Canceled, "It was interrupted."},
	} {
		if errors.Is(err, known.err) && !advises(err, known.text) {
			return known.text
		}
	}
	return ""
}

// advises reports whether an error's own text contains the command of the advice.
func advises(err error, advice string) bool {
	_, command, found := strings.Cut(advice, "`")
	command, _, _ = strings.Cut(command, "`")
	return found && (strings.Contains(err.Error(), "`"+command+"`") ||
		strings.HasPrefix(command, "weaver ") && strings.HasSuffix(command, " migrate up") && strings.Contains(err.Error(), "`weaver migrate up "))
}

// errSilent ends a verb that has already printed its result.
var errSilent = errors.New("printed already")

// silent returns an error with an exit code and no message.
func silent(code int) error { return &exitError{code: code, err: errSilent} }

// report prints an error and returns the exit code.
func report(w io.Writer, app App, err error) int {
	command := func(args ...string) string { return strings.Join(append([]string{app.Name}, args...), " ") }
	if err != nil && !errors.Is(err, errSilent) {
		var file *mistakenFile
		if errors.As(err, &file) {
			fmt.Fprintf(w, "%s\n%s: %s\n", strings.TrimRight(file.text, "\n"), app.Name, advice(command, err))
			return exitCode(err)
		}
		lines := strings.ReplaceAll(text.Printable(err.Error()), "\n", "\n"+app.Name+": ") // joined errors
		fmt.Fprintf(w, "%s: %s\n", app.Name, lines)
		if what := advice(command, err); what != "" {
			fmt.Fprintf(w, "  %s\n", text.Printable(what))
		}
	}
	return exitCode(err)
}
