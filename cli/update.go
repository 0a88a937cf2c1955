package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// metaUpdates is the metadata key of a job that an update created. Its value is the ID of the job before it. The jobs
// whose results it keeps are in JobInfo.BasedOn.
const metaUpdates = "weaver.updates"

// update is the result of --update.
type update struct {
	pipeline.Update
	of     weaver.JobID             // the latest job of the file; zero if there is no job
	found  map[string]weaver.TaskID // the compared tasks, by name
	jobs   map[string]weaver.JobID  // the jobs of these tasks
	filled map[string]*pipeline.Task
}

// updateOf compares a file with its latest job and with the jobs that this one updated.
func updateOf(ctx context.Context, c *weaver.Client, f *pipelineFile, flags pipelineFlags) (*update, error) {
	latest, err := latestOf(ctx, c, f.Name, f.isOf)
	if err != nil {
		return nil, err
	}
	if latest == nil {
		plan, err := f.plan(nil, flags)
		return &update{Update: plan}, err
	}
	missing := make(map[string]bool, len(f.Tasks))
	for i := range f.Tasks {
		missing[f.Tasks[i].Name] = true
	}
	earlier := make(map[string]pipeline.Earlier)
	found, jobs := make(map[string]weaver.TaskID), make(map[string]weaver.JobID)
	for age, next := 0, (baseWalk{latest.ID}); len(missing) > 0 && len(next) > 0; age++ {
		id := next.pop()
		st, err := readJob(ctx, c, id)
		if errors.Is(err, store.ErrNotFound) && age > 0 {
			continue // deleted: its results are unknown
		}
		if err != nil {
			return nil, err
		}
		next.push(st.BasedOn)
		for i := range st.Tasks {
			t := &st.Tasks[i]
			work, ofFile := t.Metadata[pipeline.MetaWork]
			if _, seen := earlier[t.Node]; seen || !ofFile && !t.Forgotten {
				continue
			}
			unneeded := t.State == task.Cancelled && t.Error != nil && t.Error.Kind == task.KindNotNeeded
			earlier[t.Node] = pipeline.Earlier{State: t.State, Needed: !unneeded, Allowed: t.AllowFailure && t.State == task.Failed, Work: work, Began: t.AttemptNo > 0, Forgotten: t.Forgotten, Age: age}
			found[t.Node], jobs[t.Node] = t.ID, id
			delete(missing, t.Node)
		}
	}
	plan, err := f.plan(earlier, flags)
	if err != nil {
		return nil, err
	}
	u := &update{Update: plan, of: latest.ID, found: found, jobs: jobs}
	return u, u.fill(ctx, c, f)
}

// baseWalk is a worklist of jobs. The bases of each job found are added to it.
type baseWalk []weaver.JobID

// pop removes and returns the newest job.
func (w *baseWalk) pop() weaver.JobID {
	id := slices.MaxFunc(*w, weaver.JobID.Compare)
	*w = slices.DeleteFunc(*w, func(other weaver.JobID) bool { return other == id })
	return id
}

func (w *baseWalk) push(bases []weaver.JobID) { *w = append(*w, bases...) }

// basedOn returns the jobs whose results stay in use after the update.
func (u *update) basedOn() []weaver.JobID {
	if u == nil {
		return nil
	}
	runs := make(map[string]bool, len(u.Run))
	for i := range u.Run {
		runs[u.Run[i].Name] = true
	}
	var bases []weaver.JobID
	for name, id := range u.jobs {
		if !runs[name] && !slices.Contains(bases, id) {
			bases = append(bases, id)
		}
	}
	slices.SortFunc(bases, weaver.JobID.Compare)
	return bases
}

// plan returns the tasks to run.
func (f *pipelineFile) plan(earlier map[string]pipeline.Earlier, flags pipelineFlags) (plan pipeline.Update, err error) {
	switch {
	case len(flags.From) > 0:
		if plan, err = f.UpdateFrom(earlier, flags.From); err != nil {
			err = badInput("", "--from: %w", err)
		}
	case len(flags.Only) > 0:
		if plan, err = f.UpdateOnly(earlier, flags.Only); err != nil {
			err = badInput("", "--only: %w", err)
		}
	default:
		plan = f.Update(earlier)
	}
	return plan, err
}

// fill inserts the outputs of kept tasks into the texts of tasks that run. Kept tasks are not needs in the new job.
func (u *update) fill(ctx context.Context, c *weaver.Client, f *pipelineFile) error {
	kept := make(map[string]*value.Output)
	for _, name := range f.NeedsValues(u.Kept) {
		t, err := c.Get(ctx, u.found[name])
		if errors.Is(err, store.ErrNotFound) {
			return badInput("Run it with --fresh.", "%s: the output of task %q is needed, and its job was deleted", f.label(), name)
		}
		if err != nil {
			return err
		}
		kept[name] = value.OutputOf(&t)
	}
	var err error
	if u.filled, err = f.Fill(kept); err != nil {
		return badInput("Correct the file, or run it with --fresh.", "%s: %w", f.label(), err)
	}
	return nil
}

// latestOf returns the latest job with a name that wanted accepts, in any state; nil if there is no such job.
func latestOf(ctx context.Context, c *weaver.Client, name string, wanted func(*weaver.JobInfo) bool) (latest *weaver.JobInfo, err error) {
	err = eachJob(ctx, c, name, func(j *weaver.JobInfo) bool {
		if wanted(j) {
			latest = j
		}
		return latest == nil
	})
	return latest, err
}

// maxReruns is the maximum number of tasks that a note names.
const maxReruns = 20

// notes lists the tasks that an update runs with the reasons, one per line.
func (u *update) notes(name string, job weaver.JobID) []string {
	all := text.Plural(len(u.Run)+len(u.Kept), "task")
	if u.of == (weaver.JobID{}) {
		return []string{fmt.Sprintf("%s: job %s, %s: there is no earlier job of this file", name, job, all)}
	}
	lines := []string{fmt.Sprintf("%s: job %s runs %d of %s; %d keep what was done before", name, job, len(u.Run), all, len(u.Kept))}
	for i, r := range u.Run {
		if i == maxReruns {
			lines = append(lines, fmt.Sprintf("  and %d more", len(u.Run)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("  %s runs: %s", text.OneLine(r.Name, explain.MaxNote), r.Why))
	}
	return append(lines, u.goneNote()...)
}

func (u *update) goneNote() []string {
	var lines []string
	for i, name := range u.Gone {
		if i == maxReruns {
			return append(lines, fmt.Sprintf("  and %d more are gone", len(u.Gone)-i))
		}
		lines = append(lines, fmt.Sprintf("  %s is gone from the file", text.OneLine(name, explain.MaxNote)))
	}
	return lines
}

// emptyJob is the JSON output for a file without tasks.
type emptyJob struct {
	Event     string `json:"event"` // job.empty
	Name      string `json:"name"`
	Store     string `json:"store"`
	Cancelled string `json:"cancelled_job_id,omitempty"`
}

// nothing reports that there are no tasks to run.
func (s *session) nothing(f *pipelineFile, st start) error {
	if u := st.update; u != nil && u.of != (weaver.JobID{}) {
		return s.unchanged(f, u)
	}
	empty := emptyJob{Event: "job.empty", Name: f.Name, Store: s.storePlace()}
	if st.ended != nil {
		empty.Cancelled = st.ended.ID.String()
	}
	if s.json() {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(empty)
	}
	if empty.Cancelled != "" {
		s.printf("The unfinished job %s was cancelled.\n", empty.Cancelled)
	}
	s.printf("%s: nothing to run: none of its tasks has a value\n", f.Name)
	return nil
}

// unchangedJob is the JSON output of an update without tasks to run.
type unchangedJob struct {
	Event string       `json:"event"` // job.unchanged
	JobID weaver.JobID `json:"job_id"`
	Name  string       `json:"name"`
	Store string       `json:"store"`
	Kept  int          `json:"kept"` // number of tasks
	Gone  []string     `json:"gone,omitempty"`
}

// unchanged reports that an update has no tasks to run.
func (s *session) unchanged(f *pipelineFile, u *update) error {
	if s.json() {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(unchangedJob{"job.unchanged", u.of, f.Name, s.storePlace(), len(u.Kept), u.Gone})
	}
	s.printf("%s: nothing changed since job %s, and its tasks are done: nothing to run\n", f.Name, u.of)
	for _, line := range u.goneNote() {
		s.printf("%s\n", line)
	}
	return nil
}
