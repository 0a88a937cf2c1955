package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/task"
)

// manyFlags select the tasks of a verb by their properties instead of their IDs.
type manyFlags struct {
	State     []string      `placeholder:"STATE" complete:"pending,ready,running,succeeded,failed,cancelled,blocked" help:"Tasks in these states."`
	Type      []string      `placeholder:"TYPE" help:"Tasks of these types."`
	Queue     string        `filter:"" placeholder:"NAME" help:"Tasks of this queue."`
	Job       string        `filter:"" placeholder:"JOB" help:"Tasks of this job."`
	Label     []string      `sep:"none" placeholder:"KEY=VALUE" help:"Tasks with all these labels."`
	Q         string        `filter:"" placeholder:"QUERY" help:"Query, such as 'state:failed created>-2h \"no such card\"'."`
	Newest    string        `placeholder:"ID" help:"With --q: ID of the newest task to select."`
	OlderThan time.Duration `placeholder:"DURATION" help:"Minimum time since the end, or else since the enqueue."`
	All       bool          `help:"All tasks that the verb can change."`
	DryRun    bool          `help:"List the tasks without changing them."`
	Yes       bool          `help:"Change all selected tasks."`
}

// selects reports whether any flag selects tasks.
func (f *manyFlags) selects() bool {
	return f.All || len(f.State) > 0 || len(f.Type) > 0 || f.Queue != "" || f.Job != "" || len(f.Label) > 0 || f.OlderThan != 0 || f.Q != ""
}

// manyVerb is a verb for many tasks.
type manyVerb struct {
	verb, past string
	audit      auditFlags
	force      bool
	keepSteps  bool
	cleanup    bool

	// do is the client's call of the verb for a filter; nil if only Bulk supports the verb.
	do func(*weaver.Client, context.Context, weaver.Filter, ...weaver.OperateOption) (ops.ManyAck, error)
}

// manyResult is the JSON output of a verb for many tasks.
type manyResult struct {
	Verb        string        `json:"verb"`
	DryRun      bool          `json:"dry_run,omitempty"`
	Done        int           `json:"done"`
	Asked       int           `json:"asked,omitempty"`
	UndoneFirst int           `json:"undone_first,omitempty"` // cancel, in a dry run
	AlreadyDone int           `json:"already_done,omitempty"`
	Refused     []manyRefused `json:"refused,omitempty"` // the first thousand
	RefusedMore int           `json:"refused_more,omitempty"`
	Tasks       []manyTask    `json:"tasks,omitempty"` // with a query the newest 20
	Error       string        `json:"error,omitempty"`
	After       string        `json:"after,omitempty"` // after an error: the last finished position

	// Set in a dry run of a query.
	States map[task.State]int `json:"states,omitempty"`
	Newest task.ID            `json:"newest,omitzero"`
}

type manyTask struct {
	ID    task.ID    `json:"id"`
	Type  string     `json:"task_type"`
	Queue string     `json:"queue"`
	State task.State `json:"state"`
}

type manyRefused struct {
	ID    task.ID `json:"id"`
	Error string  `json:"error"`
}

// Maximum number of refused tasks in text and in JSON.
const (
	maxRefused     = 10
	maxRefusedJSON = 1000
)

// manyOrEach applies a verb to the tasks that flags select. It returns each = true if the arguments name tasks by ID
// instead.
func (s *session) manyOrEach(ctx context.Context, v manyVerb, ids []string, f *manyFlags) (each bool, err error) {
	switch {
	case len(ids) > 0 && (f.selects() || f.DryRun || f.Yes || f.Newest != ""):
		return false, badInput("", "tasks are named by ids, or selected by flags, and not both")
	case len(ids) > 0:
		return true, nil
	case !f.selects():
		return false, badInput("--all selects all tasks that the verb can change.", "expected \"<id> ...\", or flags that select tasks: --state, --type, --queue, --job, --label, --older-than, --q")
	case f.Newest != "" && f.Q == "":
		return false, badInput("", "--newest is for --q")
	case f.OlderThan < 0:
		return false, badInput("", "--older-than %s: want 0 or more", f.OlderThan)
	}
	return false, s.withClient(ctx, func(client *weaver.Client) error {
		filter, err := f.filter(ctx, s, client)
		if err != nil {
			return err
		}
		if f.Q != "" || v.do == nil {
			return s.bulk(ctx, client, &v, f, filter)
		}
		opts := v.audit.options()
		if v.force {
			opts = append(opts, weaver.Force())
		}
		if v.keepSteps {
			opts = append(opts, weaver.KeepSteps())
		}
		if v.cleanup {
			opts = append(opts, weaver.Cleanups())
		}
		if f.OlderThan > 0 {
			opts = append(opts, weaver.OlderThan(f.OlderThan))
		}
		if !f.Yes || f.DryRun {
			opts = append(opts, weaver.DryRun())
		}
		ack, err := v.do(client, ctx, filter, opts...)
		if errors.Is(err, weaver.ErrInvalidOption) {
			return err
		}
		if err == nil && !f.Yes && !f.DryRun {
			return badInput("--dry-run lists them.", "%s would be %s; nothing was done without --yes", text.Plural(ack.Done, "task"), v.past)
		}
		return s.showMany(v.verb, v.past, f.DryRun, &bulkResult{ManyAck: ack}, err)
	})
}

// filter converts the flags to a filter.
func (f *manyFlags) filter(ctx context.Context, s *session, client *weaver.Client) (weaver.Filter, error) {
	ls := taskLsCmd{State: f.State, Type: f.Type, Queue: f.Queue, Label: f.Label, pageFlags: pageFlags{Limit: 1000}}
	filter, err := ls.filter()
	if err != nil || f.Job == "" {
		return filter, err
	}
	filter.Job, err = s.resolveOne(ctx, client, wantJob, f.Job)
	return filter, err
}

// showMany prints the result of a verb, also if it failed halfway.
func (s *session) showMany(verb, past string, dryRun bool, all *bulkResult, err error) error {
	ack := &all.ManyAck
	if s.json() {
		res := manyResult{Verb: verb, DryRun: dryRun, Done: ack.Done, Asked: ack.Asked, UndoneFirst: ack.UndoneFirst, AlreadyDone: ack.AlreadyDone}
		for _, r := range ack.Refused[:min(len(ack.Refused), maxRefusedJSON)] {
			res.Refused = append(res.Refused, manyRefused{r.ID, r.Err.Error()})
		}
		res.RefusedMore = len(ack.Refused) - len(res.Refused)
		for _, t := range ack.Tasks {
			res.Tasks = append(res.Tasks, manyTask(t))
		}
		if err != nil {
			res.Error, res.After = err.Error(), ack.After
		}
		if len(all.states) > 0 {
			res.States, res.Newest = all.states, all.newest
		}
		if jsonErr := s.writeJSON(res); jsonErr != nil {
			return jsonErr
		}
		return manyError(ack, dryRun, err)
	}
	if len(ack.Tasks) > 0 {
		t := newTable("ID", "TYPE", "QUEUE", "STATE")
		for _, m := range ack.Tasks[:min(len(ack.Tasks), maxListed)] {
			t.add(plain(m.ID.String()), plain(m.Type), plain(text.OneLine(m.Queue, explain.MaxNote)), painted(string(m.State), text.StateColor(string(m.State))))
		}
		s.list(t)
	}
	if more := ack.Done - min(len(ack.Tasks), maxListed); len(ack.Tasks) > 0 && more > 0 {
		s.printf("… and %d more.\n", more)
	}
	would, refused := "", "Refused"
	if dryRun {
		would, refused = " would be", "Would be refused"
	}
	s.printf("%s%s %s", text.Plural(ack.Done, "task"), would, past)
	if len(all.states) > 0 {
		s.printf(" (%s). --newest %s leaves out what comes later", counted(all.states), all.newest)
	}
	s.printf(".")
	if ack.Asked > 0 {
		s.printf(" %d of them run, or clean up, and were asked to end.", ack.Asked)
	}
	if ack.UndoneFirst > 0 {
		s.printf(" %d of them would be undone first: `%s` lists what.", ack.UndoneFirst, s.command("why", "ID", "--undo"))
	}
	s.printf("\n")
	for i, r := range ack.Refused {
		if i == maxRefused {
			s.printf("%d more%s refused.\n", len(ack.Refused)-i, cmp.Or(would, " were"))
			break
		}
		s.printf("%s: %s\n", refused, text.OneLine(r.Err.Error(), explain.MaxMessage))
	}
	if err != nil {
		err = fmt.Errorf("%w; run the same command again for the rest", err)
	}
	return manyError(ack, dryRun, err)
}

// manyError returns the final error of a verb for many tasks: the work failed if tasks were refused.
func manyError(ack *ops.ManyAck, dryRun bool, err error) error {
	if err != nil || dryRun || len(ack.Refused) == 0 {
		return err
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("%s refused", was(len(ack.Refused), "task"))}
}
