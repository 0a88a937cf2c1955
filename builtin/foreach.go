package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// Foreach runs a command or a request for each value of a list that an earlier task
// put out: each as a child of its own, named convert[a.mp4] in a job whose task
// convert this is. It succeeds when all of them have succeeded, also when there are
// none, and fails when one did not. See ForeachInput and ForeachOutput.
//
// A child has the queue, attempts, pauses, timeout, priority and labels of the
// task. Retry of a child that failed brings the task back.
var Foreach = weaver.Define[ForeachInput, ForeachOutput]("weaver.flow.foreach.v1")

// ForeachInput says what runs for which values. One of Run and Request is given.
type ForeachInput struct {
	// Task names a need, whose output has the values: the entries of a JSON array,
	// if it is one (objects as compact JSON), else its lines (stdout of a command,
	// body of a request). What is blank is left out. At most 10,000 values, each
	// another one of at most 4 KiB; others fail the task.
	Task string `json:"task,omitempty"`
	// Values are the values, where Task is "": JSON, a line as a string.
	Values []json.RawMessage `json:"values,omitempty"`

	// Run and Request are for each value. With Templates their texts have it as
	// {{.item}}, and values of needs: see RunInput.Templates.
	Run     *RunInput     `json:"run,omitempty"`
	Request *RequestInput `json:"request,omitempty"`

	MaxParallel int `json:"max_parallel,omitempty"` // how many run at once; 0: no limit of its own
	// ConcurrencyKey and ConcurrencyLimit are those of the children. With
	// MaxParallel there is none.
	ConcurrencyKey   string `json:"concurrency_key,omitempty"`
	ConcurrencyLimit int    `json:"concurrency_limit,omitempty"`
}

// ForeachOutput is the output when all have succeeded.
type ForeachOutput struct {
	Values int `json:"values"` // how many there were
}

const (
	maxItem     = 4 << 10  // bytes of a value
	maxForeach  = 32 << 20 // bytes of the inputs of all children
	shownOfItem = 60       // characters of a value in a message
)

// Validate reports every mistake at once. Enqueueing asks it.
func (in ForeachInput) Validate() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch {
	case in.Run == nil && in.Request == nil:
		complain("nothing to run: give run or request")
	case in.Run != nil && in.Request != nil:
		complain("run and request are both given: keep one of them")
	case in.Run != nil:
		problems = append(problems, in.Run.validateForeach()...)
	default:
		problems = append(problems, in.Request.validateForeach()...)
	}
	if in.Task != "" && len(in.Values) > 0 {
		complain("task and values are both given: keep one of them")
	}
	if in.MaxParallel < 0 {
		complain("max_parallel: %d is negative: write 0 for no limit", in.MaxParallel)
	}
	if in.MaxParallel > 0 && in.ConcurrencyKey != "" {
		complain("max_parallel and concurrency_key are both given: keep one of them")
	}
	return errors.Join(problems...)
}

// validateForeach is Validate of an input whose texts may have {{.item}}.
func (in RunInput) validateForeach() []error {
	if in.Templates {
		if problems := in.texts().CheckForeach(); len(problems) > 0 {
			return problems
		}
		sample := in.texts().Sample()
		in.Argv, in.Env, in.Templates = sample.Args, sample.Env, false
	}
	return problemsOf(in.Validate())
}

func (in RequestInput) validateForeach() []error {
	if in.Templates {
		if problems := in.texts().CheckForeach(); len(problems) > 0 {
			return problems
		}
		written := in.URL
		if in = in.with(in.texts().Sample()); in.URL == "x" && written != "x" {
			in.URL = "https://x.example/" // it is a value as a whole
		}
	}
	return problemsOf(in.Validate())
}

// problemsOf are the errors that errors.Join joined.
func problemsOf(err error) []error {
	if joined := (interface{ Unwrap() []error })(nil); errors.As(err, &joined) {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// foreach ends its attempt with the children. Crash before that is stored: there
// are none, and it runs again; after it they are tasks of the store.
func foreach(ctx context.Context, in ForeachInput) (ForeachOutput, error) {
	if err := in.Validate(); err != nil { // one that was enqueued by name alone
		return ForeachOutput{}, weaver.Permanent(err)
	}
	a, err := engine.From(ctx)
	if err != nil {
		return ForeachOutput{}, err
	}
	find := value.Remember(needed(ctx))
	values, err := in.values(find)
	if err != nil {
		return ForeachOutput{}, unfilled("list the values", err)
	}
	if err := in.checkValues(values); err != nil {
		return ForeachOutput{}, weaver.Permanent(err)
	}
	out := ForeachOutput{Values: len(values)}
	done, err := succeeded(ctx, a)
	if err != nil {
		return ForeachOutput{}, err
	}
	var names []string
	var drafts []weaver.Draft
	for _, v := range values {
		name := value.NodeName(cmp.Or(a.Task().Node, "foreach"), value.ItemText(v))
		if done[name] {
			continue
		}
		d, err := in.draft(a.Task(), v, find)
		if err != nil {
			return ForeachOutput{}, unfilled("value "+shownItem(v), err)
		}
		names, drafts = append(names, name), append(drafts, d)
	}
	if len(drafts) == 0 {
		return out, nil
	}
	return out, named(weaver.Decompose(weaver.JoinComplete, drafts...), names)
}

// values are those of the need, or those that are given.
func (in ForeachInput) values(find value.Find) ([]json.RawMessage, error) {
	if in.Task == "" {
		return in.Values, nil
	}
	o, err := find(in.Task)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, &value.Error{Why: fmt.Sprintf("the task needs no task %q, or it was deleted", in.Task)}
	}
	return o.List()
}

// checkValues refuses values that cannot be nodes.
func (in ForeachInput) checkValues(values []json.RawMessage) error {
	if n := len(values); n > task.MaxChildren {
		return fmt.Errorf("%s has %d values, and at most %d are allowed: let it write fewer, or let a command do several values", in.source(), n, task.MaxChildren)
	}
	first := make(map[string]int, len(values))
	for i, v := range values {
		text := value.ItemText(v)
		before, again := first[text]
		switch {
		case len(text) > maxItem:
			return fmt.Errorf("value %d of %s, %s, has %d bytes, and at most %d are allowed: let it write the names of files", i+1, in.source(), shownItem(v), len(text), maxItem)
		case again:
			return fmt.Errorf("%s has the value %s twice, as values %d and %d: let it write each once, as sort -u does", in.source(), shownItem(v), before, i+1)
		}
		first[text] = i + 1
	}
	raw, err := json.Marshal(in)
	if size := len(raw) * len(values); err == nil && size > maxForeach {
		return fmt.Errorf("%s has %d values, for which %d bytes would be stored, and at most %d are allowed: keep long texts in files of their own", in.source(), len(values), size, maxForeach)
	}
	return nil
}

// source names what has the values.
func (in ForeachInput) source() string {
	if in.Task == "" {
		return "the list"
	}
	return fmt.Sprintf("task %q", in.Task)
}

func shownItem(v json.RawMessage) string {
	text := []rune(value.ItemText(v))
	if len(text) > shownOfItem {
		text = append(text[:shownOfItem], '…')
	}
	return strconv.Quote(string(text))
}

// succeeded are the names of the children that did what they had to do before an
// operator retried the task.
func succeeded(ctx context.Context, a *engine.Attempt) (map[string]bool, error) {
	if a.Task().AttemptNo == 1 {
		return nil, nil
	}
	children, err := weaver.Children(ctx)
	if err != nil {
		return nil, err
	}
	done := make(map[string]bool, len(children))
	for _, c := range children {
		done[c.Node] = c.State == weaver.StateSucceeded
	}
	return done, nil
}

// draft is the child for a value.
func (in ForeachInput) draft(of *task.Task, v json.RawMessage, find value.Find) (weaver.Draft, error) {
	opts := in.options(of)
	if in.Request != nil {
		made := *in.Request
		if made.Templates {
			texts, err := made.texts().FillWithItem(v, find)
			if err != nil {
				return weaver.Draft{}, err
			}
			made = made.with(texts)
		}
		return Request.With(made, opts...), wrongItem(made.Validate())
	}
	made := *in.Run
	if made.Templates {
		texts, err := made.texts().FillWithItem(v, find)
		if err != nil {
			return weaver.Draft{}, err
		}
		made.Argv, made.Env, made.Templates = texts.Args, texts.Env, false
		if err := made.checkLengths(*in.Run); err != nil {
			return weaver.Draft{}, wrongItem(err)
		}
	}
	return Run.With(made, opts...), wrongItem(made.Validate())
}

// wrongItem is an error that another attempt would have again.
func wrongItem(err error) error {
	if err == nil {
		return nil
	}
	return &value.Error{Why: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// options are what a child has of the task.
func (in ForeachInput) options(of *task.Task) []weaver.EnqueueOption {
	opts := []weaver.EnqueueOption{weaver.Queue(of.Queue), weaver.MaxAttempts(of.MaxAttempts), weaver.Priority(of.Priority)}
	if of.Backoff > 0 {
		opts = append(opts, weaver.Backoff(of.Backoff))
	}
	if of.BackoffMax > 0 {
		opts = append(opts, weaver.BackoffMax(of.BackoffMax))
	}
	if of.Timeout > 0 && (in.Request == nil || in.Request.Until == nil) { // a poll has a limit of its own
		opts = append(opts, weaver.Timeout(of.Timeout))
	}
	for _, key := range sortedKeys(of.Labels) {
		opts = append(opts, weaver.Label(key, of.Labels[key]))
	}
	switch {
	case in.MaxParallel > 0:
		opts = append(opts, weaver.ConcurrencyKey("foreach/"+of.ID.String(), in.MaxParallel))
	case in.ConcurrencyKey != "":
		opts = append(opts, weaver.ConcurrencyKey(in.ConcurrencyKey, max(1, in.ConcurrencyLimit)))
	}
	return opts
}

// named gives the children of a decompose names of their own.
func named(err error, names []string) error {
	var d *engine.Decompose
	if !errors.As(err, &d) {
		return err
	}
	unnamed := d.Children
	d.Children = func(ids *task.IDs, limit int) ([]task.New, error) {
		children, err := unnamed(ids, limit)
		if err == nil && len(children) == len(names) {
			for i := range names {
				children[i].Node = names[i]
			}
		}
		return children, err
	}
	return d
}
