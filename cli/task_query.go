package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/task"
)

// queryHelp is the help text for verbs with --q.
const queryHelp = "\n\n--q selects tasks with a query, such as 'state:failed type:acme.billing.* label.team=pay created>-2h'. " +
	"A task must match all terms; commas separate alternatives. The terms are state:, type:, queue:, waiting:, error:, " +
	"undo: (open, blocked, failed, abandoned), label.KEY=, input.PATH=, output.PATH=, created>, created<, key:, node:, parent:, job:, " +
	"and words that occur in the last error, the name or the keys. Texts with spaces need double quotes."

// parseQuery parses --q.
func parseQuery(q string) (ops.Query, error) {
	parsed, err := ops.ParseQuery(q, time.Now())
	if err != nil {
		return parsed, badInput("", "--q: %w", err)
	}
	return parsed, nil
}

// searched reads the masked rows of a query, up to its Limit.
func (s *session) searched(ctx context.Context, client *weaver.Client, q ops.Query) ([]task.Task, string, error) {
	unread := 0
	tasks, next, err := fill(q.Filter.Limit, q.Filter.After, func(limit int, after string) ([]task.Task, string, error) {
		q.Filter.Limit, q.Filter.After = limit, after
		page, err := masked(client).Search(ctx, q)
		unread += page.Unread
		return page.Items, page.Next, err
	})
	if err == nil {
		s.noteUnread(unread)
	}
	return tasks, next, err
}

// noteUnread says that tasks may be missing from the result of a query.
func (s *session) noteUnread(n int) {
	if n > 0 {
		fmt.Fprintf(s.errs, "weaver: values of %s could not be read and were not searched: see --bucket and --codec-key\n", text.Plural(n, "task"))
	}
}

// bulkResult sums up the calls of a bulk verb.
type bulkResult struct {
	ops.ManyAck
	scanned, unread int
	states          map[task.State]int
	newest          task.ID
}

func (b *bulkResult) add(r *ops.BulkResult) {
	b.Done, b.Asked, b.AlreadyDone = b.Done+r.Done, b.Asked+r.Asked, b.AlreadyDone+r.AlreadyDone
	b.UndoneFirst += r.UndoneFirst
	b.Refused = append(b.Refused, r.Refused...)
	b.scanned, b.unread = b.scanned+r.Scanned, b.unread+r.Unread
	if b.newest.IsZero() {
		b.newest = r.Newest
	}
	if len(b.Tasks) == 0 {
		b.Tasks = r.Samples
	}
	for state, n := range r.States {
		if b.states == nil {
			b.states = make(map[task.State]int)
		}
		b.states[state] += n
	}
	b.After = r.Next
}

// bulk applies a verb to all tasks that a query selects, call by call.
func (s *session) bulk(ctx context.Context, client *weaver.Client, v *manyVerb, f *manyFlags, filter weaver.Filter) error {
	q, err := parseQuery(f.Q)
	if err != nil {
		return err
	}
	q = q.And(filter)
	req := ops.BulkRequest{Verb: ops.BulkVerb(v.verb), Query: &q, OlderThan: f.OlderThan, DryRun: f.DryRun || !f.Yes, Force: v.force, KeepSteps: v.keepSteps, Cleanups: v.cleanup, By: v.audit.who(), Reason: v.audit.Reason}
	if f.Newest != "" {
		if req.Newest, err = task.ParseID(f.Newest); err != nil {
			return badInput("", "--newest: %w", err)
		}
	}
	var all bulkResult
	calls := 0
	for more := true; more; calls++ {
		res, err := client.Bulk(ctx, req)
		all.add(&res)
		if errors.Is(err, weaver.ErrInvalidOption) {
			return err
		}
		if err != nil {
			return s.showMany(v.verb, v.past, f.DryRun, &all, err)
		}
		req.After, more = res.Next, res.Next != ""
	}
	if !req.DryRun && calls > 1 {
		err = s.refusedAgain(ctx, client, &req, &all)
	}
	s.noteUnread(all.unread)
	if err == nil && !f.Yes && !f.DryRun {
		return badInput("--dry-run lists them.", "%s would be %s; nothing was done without --yes", text.Plural(all.Done, "task"), v.past)
	}
	return s.showMany(v.verb, v.past, f.DryRun, &all, err)
}

// refusedAgain tries refused tasks a second time: their needs may have been part of a later call.
func (s *session) refusedAgain(ctx context.Context, client *weaver.Client, req *ops.BulkRequest, all *bulkResult) error {
	refused := all.Refused
	all.Refused = nil
	slices.Reverse(refused) // needs are often older
	for part := range slices.Chunk(refused, ops.MaxBulk) {
		again := ops.BulkRequest{Verb: req.Verb, Force: req.Force, By: req.By, Reason: req.Reason}
		for _, r := range part {
			again.IDs = append(again.IDs, r.ID)
		}
		for more := true; more; {
			res, err := client.Bulk(ctx, again)
			all.add(&res)
			if err != nil {
				return err
			}
			again.After, more = res.Next, res.Next != ""
		}
	}
	return nil
}

// counted formats the number of tasks per state: "5 failed, 2 cancelled".
func counted(states map[task.State]int) string {
	var parts []string
	for _, state := range task.States() {
		if n := states[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}
