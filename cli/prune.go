package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxDays is the maximum number of whole days in a time.Duration.
const maxDays = int(math.MaxInt64 / (24 * time.Hour))

// age is the type of a duration flag that also accepts days.
type age time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *age) UnmarshalText(b []byte) error {
	given := string(b)
	d, err := time.ParseDuration(given)
	if days, ok := strings.CutSuffix(given, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		switch {
		case err != nil:
		case math.IsNaN(n):
			err = strconv.ErrSyntax
		case n < 0:
			d = -1
		case n > float64(maxDays):
			return fmt.Errorf("%s: want at most %dd, which is 292 years", given, maxDays)
		default:
			d = time.Duration(n * 24 * float64(time.Hour))
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q: not a duration; want for example 30d, 12h or 90m, at most %dd", given, maxDays)
	case d < 0:
		return fmt.Errorf("%s: want 0 or more", given)
	}
	*a = age(d)
	return nil
}

// taskPruneCmd is the verb task prune.
type taskPruneCmd struct {
	OlderThan age      `default:"30d" placeholder:"AGE" help:"Minimum time since the end (30d, 12h); default 30d."`
	State     []string `placeholder:"STATE" complete:"succeeded,failed,cancelled" help:"End states: succeeded, failed, cancelled."`
	Type      []string `placeholder:"TYPE" help:"Task types; without jobs."`
	DryRun    bool     `help:"Print the amount without removing it."`
	Yes       bool     `help:"Remove the tasks and jobs."`
}

// Help is shown by task prune --help.
func (taskPruneCmd) Help() string {
	return "Removes ended jobs as a whole and ended tasks outside jobs, with all their records: steps, attempts, audit, and the output of " +
		"their commands. Children are removed with their parents. A task that another task needs, or a job that a later job is an " +
		"update of, stays until that is removed. The work is done in small batches while workers run. --dry-run prints the amount, " +
		"--yes removes it. With --type no job is removed."
}

// pruned is the JSON output of task prune.
type pruned struct {
	DryRun bool  `json:"dry_run,omitempty"`
	Tasks  int   `json:"tasks"` // outside jobs
	Jobs   int   `json:"jobs"`
	Freed  int64 `json:"bytes_freed"`
}

var endStates = []task.State{task.Succeeded, task.Failed, task.Cancelled}

// Run implements the verb.
func (c *taskPruneCmd) Run(ctx context.Context, s *session) error {
	states, err := parseStates(c.State, endStates)
	if err != nil {
		return err
	}
	for _, t := range c.Type {
		if err := task.CheckTypeName(t); err != nil {
			return badInput("", "--type: %w", err)
		}
	}
	req := store.CollectRequest{
		Retain: []store.Retention{{States: states, Types: c.Type, Age: time.Duration(c.OlderThan)}},
		DryRun: c.DryRun || !c.Yes,
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		var done pruned
		done.DryRun = c.DryRun
		err := s.prune(ctx, client, req, &done)
		if err == nil && !c.DryRun && !c.Yes && done.Tasks+done.Jobs > 0 {
			return badInput("--dry-run prints the same.", "%s and %s would be removed; nothing was done without --yes", text.Plural(done.Tasks, "task"), text.Plural(done.Jobs, "job"))
		}
		if s.json() {
			return errors.Join(err, s.writeJSON(done))
		}
		verb := "removed"
		if c.DryRun {
			verb = "would be removed"
		}
		s.printf("%s and %s %s", text.Plural(done.Tasks, "task"), text.Plural(done.Jobs, "job"), verb)
		if done.Freed > 0 {
			s.printf("; the file of the store became %s smaller", fmt.Sprintf("%.1f MiB", float64(done.Freed)/(1<<20)))
		}
		s.printf(".\n")
		if err != nil {
			return fmt.Errorf("%w; run the same command again for the rest", err)
		}
		return nil
	})
}

// prune removes tasks until no old ones are left. Crash here: logs of the last batch stay until the size limit of the
// log folder removes them.
func (s *session) prune(ctx context.Context, client *weaver.Client, req store.CollectRequest, done *pruned) error {
	for {
		got, err := client.Store().Collect(ctx, client.Namespace(), req)
		if err != nil {
			return err
		}
		done.Tasks, done.Jobs, done.Freed = done.Tasks+got.Tasks, done.Jobs+got.Jobs, done.Freed+got.Freed
		if !req.DryRun {
			if err := s.removeLogs(got.Gone...); err != nil {
				return err
			}
		}
		if got.Done() {
			return nil
		}
		req.After = got.Next
	}
}

// removeLogs removes the logs of tasks and jobs.
func (s *session) removeLogs(ids ...task.ID) error {
	dir := s.logFolder()
	if dir == "" || len(ids) == 0 {
		return nil
	}
	if err := s.logsIn(dir, nil).Remove(ids...); err != nil {
		return fmt.Errorf("remove the output of commands in %s: %w", dir, err)
	}
	return nil
}

// jobDeleteCmd is the verb job delete.
type jobDeleteCmd struct {
	IDs    []string `arg:"" name:"id" help:"Ended jobs: IDs, ID prefixes, names (latest), or files."`
	DryRun bool     `help:"Print the jobs without deleting them."`
	auditFlags
}

// Help is shown by job delete --help.
func (jobDeleteCmd) Help() string {
	return "Deletes a job as a whole, with its tasks, all their records, and the output of their commands. A job stays if it has not " +
		"ended, if a task outside needs one of its tasks, or if a later job is an update of it."
}

// jobDeleted is the JSON output of job delete for one job.
type jobDeleted struct {
	ID     task.ID `json:"id"`
	Verb   string  `json:"verb"`
	DryRun bool    `json:"dry_run,omitempty"`
	Done   bool    `json:"done"`
	Tasks  int     `json:"tasks"`
	Error  string  `json:"error,omitempty"`
}

// Run implements the verb.
func (c *jobDeleteCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		ids, err := s.resolve(ctx, client, wantJob, c.IDs...)
		if err != nil {
			return err
		}
		results := make([]jobDeleted, len(ids))
		var errs []error
		for i, id := range ids {
			n, err := c.one(ctx, s, client, id)
			err = s.absent(ctx, client, "job", id, err)
			results[i] = jobDeleted{ID: id, Verb: "delete", DryRun: c.DryRun, Done: err == nil, Tasks: n}
			if err != nil {
				results[i].Error = err.Error()
				errs = append(errs, err)
			}
		}
		if s.json() {
			if err := s.writeJSON(map[string]any{"results": results}); err != nil {
				return err
			}
			return worst(s.command, errs)
		}
		would := ""
		if c.DryRun {
			would = "would be "
		}
		for _, r := range results {
			if r.Done {
				s.printf("%s: %sdeleted, with %s.\n", r.ID, would, text.Plural(r.Tasks, "task"))
			}
		}
		return worst(s.command, errs)
	})
}

func (c *jobDeleteCmd) one(ctx context.Context, s *session, client *weaver.Client, id task.ID) (int, error) {
	if !c.DryRun {
		n, err := client.DeleteJob(ctx, id, c.options()...)
		if err != nil {
			return 0, err
		}
		return n, s.removeLogs(id)
	}
	j, err := client.Job(ctx, id)
	if err == nil && !j.State.Terminal() {
		err = fmt.Errorf("job %s is %s, only jobs that ended can be deleted: cancel it first: %w", id, j.State, store.ErrState)
	}
	return j.Counters.Total, err
}

const (
	// keepJobs is the time for which `run` keeps ended jobs of its file.
	keepJobs = 30 * 24 * time.Hour
	// maxOldJobs is the maximum number of jobs that one run removes.
	maxOldJobs = 100
)

// removeOld removes jobs of the file that ended before keepJobs and returns their number. It keeps the latest job for
// each set of params, and the jobs that later updates are based on.
func (r *pipelineRun) removeOld(ctx context.Context) (n int, err error) {
	latest, kept := make(map[string]bool), make(map[weaver.JobID]bool)
	var old []weaver.JobID
	err = eachJob(ctx, r.client, r.file.Name, func(j *weaver.JobInfo) bool {
		if j.Meta[metaFile] != r.file.path {
			return true
		}
		params := j.Meta[metaParams]
		if latest[params] && !kept[j.ID] && j.State.Terminal() && time.Since(j.FinishedAt) > keepJobs {
			old = append(old, j.ID)
			return true
		}
		latest[params] = true
		for _, base := range j.BasedOn {
			kept[base] = true
		}
		return true
	})
	for i := len(old) - 1; i >= 0 && n < maxOldJobs && err == nil; i-- {
		_, err = r.client.DeleteJob(ctx, old[i], weaver.By(r.session.app.Name+" run"), weaver.Reason("it ended more than 30 days ago"))
		if errors.Is(err, store.ErrState) || errors.Is(err, store.ErrNotFound) {
			err = nil
			continue
		}
		if err == nil {
			n++
			err = r.removeLogs(old[i])
		}
	}
	return n, err
}
