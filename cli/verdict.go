package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// verdict returns the error with the exit code, and a suggestion if the job did not succeed.
func (r *pipelineRun) verdict(st jobTasks, workErr error) error {
	switch {
	case workErr != nil:
		return workErr
	case st.State == task.JobSucceeded:
		return nil
	case st.State == task.JobFailed, st.State == task.JobCancelled:
		if r.undid(&st) {
			r.hint("`%s` tells why; `%s` runs the undone tasks again, and the rest.", r.command("why", st.ID.String()), r.again(r.file, "run")+" --update")
		} else if args := explain.RaiseArgs(&st.JobInfo); args != nil {
			r.hint("`%s` tells why; `%s` goes on from there.", r.command("why", st.ID.String()), r.command(args...))
		} else {
			r.hint("`%s` tells why; `%s` and the same run again go on from there.", r.command("why", st.ID.String()), r.retryOf(st))
		}
		return silent(exitFailed)
	case st.State == task.JobBlocked:
		return r.blocked(&st)
	}
	return &exitError{
		code:   exitFailed,
		err:    fmt.Errorf("stopped: %d of the %d tasks of job %s have ended", st.Counters.Total-st.Counters.Unfinished, st.Counters.Total, st.ID),
		advice: fmt.Sprintf("Go on with `%s`.", r.again(r.file, "run")),
	}
}

// undid reports whether an undo of a task of the job has begun.
func (r *pipelineRun) undid(st *jobTasks) bool {
	undos := make(map[string]bool)
	for i := range r.file.Tasks {
		if t := &r.file.Tasks[i]; t.Undoes != "" {
			undos[t.Name] = true
		}
	}
	return slices.ContainsFunc(st.Tasks, func(t task.Task) bool { return undos[t.Node] && t.AttemptNo > 0 })
}

// hint prints a line for people at the end of the result.
func (r *pipelineRun) hint(format string, args ...any) {
	if !r.json() {
		r.printf(format+"\n", args...)
	}
}

// unblocks returns the command that approves a task of the run's job. A file with params may have several jobs; its
// name would select the latest.
func (r *pipelineRun) unblocks(node string) string {
	job := r.file.Name
	if len(r.file.Params) > 0 {
		job = r.job.id.String()
	}
	return r.command("task", "unblock", job+"/"+node)
}

// blocked returns the error of a run whose job waits for people.
func (r *pipelineRun) blocked(st *jobTasks) error {
	asking := questions(st)
	if len(asking) == 0 {
		return &exitError{
			code:   exitFailed,
			err:    fmt.Errorf("job %s is blocked: none of its unfinished tasks can go on without a person", st.ID),
			advice: fmt.Sprintf("`%s` tells what is needed.", r.command("why", st.ID.String())),
		}
	}
	names := make([]string, len(asking))
	for i, t := range asking {
		names[i] = t.Node
	}
	what := text.OneLine(strings.Join(names, ", "), explain.MaxMessage) + " waits for a person"
	if len(names) > 1 {
		what = fmt.Sprintf("%s wait for a person", text.Plural(len(names), "task"))
	}
	return &exitError{
		code:   exitFailed,
		err:    fmt.Errorf("job %s is blocked: %s", st.ID, what),
		advice: fmt.Sprintf("`%s` approves; then `%s` goes on.", r.unblocks(asking[0].Node), r.again(r.file, "run")),
	}
}
