package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// Foreach runs a command or a request for each value of a list that an earlier
// task put out. Each runs as a child task, named convert[a.mp4] for a task named
// convert in a job. It succeeds when all children have succeeded, also without
// values, and fails when a child fails. See ForeachInput and ForeachOutput.
//
// A child has the queue, attempts, pauses, timeout, priority and labels of the
// task. A retry of a failed child also resumes the task.
var Foreach = weaver.Define[ForeachInput, ForeachOutput]("weaver.flow.foreach.v1")

// ForeachInput is the list of values and the work for each. Exactly one of Run and
// Request is set.
type ForeachInput struct {
	// Task names a need whose output holds the values. They are the entries of a JSON
	// array (objects as compact JSON), or else the lines of a command's stdout or a
	// request's body. Blank values are skipped. There may be at most 10,000 values,
	// all different, of at most 4 KiB each; otherwise the task fails.
	Task string `json:"task,omitempty"`
	// Values are the values if Task is "": JSON, with a line as a string.
	Values []json.RawMessage `json:"values,omitempty"`

	// Run and Request are the work for each value. With Templates, their texts may
	// contain the value as {{.item}}, and values of needs: see RunInput.Templates.
	Run     *RunInput     `json:"run,omitempty"`
	Request *RequestInput `json:"request,omitempty"`

	MaxParallel int `json:"max_parallel,omitempty"` // maximum of running children; 0: no limit
	// ConcurrencyKey and ConcurrencyLimit apply to the children. They exclude
	// MaxParallel.
	ConcurrencyKey   string `json:"concurrency_key,omitempty"`
	ConcurrencyLimit int    `json:"concurrency_limit,omitempty"`
}

// ForeachOutput is the output after all children succeeded.
type ForeachOutput struct {
	Values int `json:"values"` // number of values
}

const (
	maxItem     = 4 << 10  // bytes of a value
	maxForeach  = 32 << 20 // bytes of the inputs of all children
	shownOfItem = 60       // characters of a value in messages
)

// Validate returns all problems with the input. Enqueue calls it.
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

// validateForeach is Validate for an input whose texts may contain {{.item}}.
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
			in.URL = "https://x.example/" // the whole URL is a value
		}
	}
	return problemsOf(in.Validate())
}

// problemsOf returns the errors joined by errors.Join.
func problemsOf(err error) []error {
	if joined := (interface{ Unwrap() []error })(nil); errors.As(err, &joined) {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// foreach ends its attempt by creating the children. Crash before that is stored:
// there are no children, and it runs again. Crash after: the children are tasks of
// the store.
func foreach(ctx context.Context, in ForeachInput) (ForeachOutput, error) {
	if err := in.Validate(); err != nil { // a task enqueued by name
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

// values returns the values of the need, or the given ones.
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

// checkValues refuses values that cannot become nodes.
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

// source names the source of the values, for messages.
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

// succeeded returns the names of children that succeeded before an operator
// retried the task.
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

// draft returns the child for a value.
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

// wrongItem is an error that a retry would repeat.
func wrongItem(err error) error {
	if err == nil {
		return nil
	}
	return &value.Error{Why: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// options returns the options that a child inherits.
func (in ForeachInput) options(of *task.Task) []weaver.EnqueueOption {
	opts := []weaver.EnqueueOption{weaver.Queue(of.Queue), weaver.MaxAttempts(of.MaxAttempts), weaver.Priority(of.Priority)}
	if of.Backoff > 0 {
		opts = append(opts, weaver.Backoff(of.Backoff))
	}
	if of.BackoffMax > 0 {
		opts = append(opts, weaver.BackoffMax(of.BackoffMax))
	}
	if of.Timeout > 0 && (in.Request == nil || in.Request.Until == nil) { // a poll has its own limit
		opts = append(opts, weaver.Timeout(of.Timeout))
	}
	for _, key := range slices.Sorted(maps.Keys(of.Labels)) {
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

// named returns the children of a decompose with their names.
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
