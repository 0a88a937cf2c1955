package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/text"
)

// scheduled returns the schedule of the file. Its runs are no jobs of the file, and any worker runs them.
func (f *pipelineFile) scheduled() weaver.Schedule {
	opts := pipeline.JobOptions{
		BaseDir: filepath.Dir(f.path), Types: f.inputs.types.Known, Identity: f.path, Metadata: map[string]string{metaScheduleFile: f.path},
	}
	if params := f.ParamsJSON(); params != "" {
		opts.Metadata[metaParams] = params
	}
	return f.Schedule.Of(f.Name, f.Job(opts))
}

// submitSchedule stores the schedule of a file, or changes the one that the file has.
func (c *submitCmd) submitSchedule(ctx context.Context, s *session, file *pipelineFile) error {
	if f := c.pipelineFlags; f.Resume || f.Fresh || f.Update || f.MaxAge != 0 {
		return badInput("`"+s.command("run", file.given)+"` runs it once, now.", "submit %s: it has a schedule, and --resume, --fresh, --update, --from, --only and --max-age are about an unfinished job", file.label())
	}
	sched := file.scheduled()
	if err := sched.Err(); err != nil {
		return badInput("", "%s: %w", file.label(), err)
	}
	return s.withProducer(ctx, func(client *weaver.Client) error {
		old, err := client.Schedule(ctx, file.Name)
		switch {
		case errors.Is(err, weaver.ErrNotFound):
		case err != nil:
			return err
		case old.Metadata[metaScheduleFile] != file.path:
			return badInput("Give the pipeline another name, or remove that one: `"+s.command("schedule", "rm", file.Name)+"`.",
				"%s: there is a schedule %s already, %s", file.label(), text.OneLine(file.Name, explain.MaxNote), ofOther(&old))
		}
		info, err := client.PutSchedule(ctx, sched, weaver.SeenVersion(old.Version), weaver.By(auditFlags{}.who()), weaver.Reason("submitted "+file.path))
		if errors.Is(err, weaver.ErrInvalidSchedule) {
			return badInput("", "%s: %w", file.label(), err)
		}
		if err != nil {
			return err
		}
		got := submitted{
			Name: file.Name, Disposition: "created", Schedule: &info,
			Store: s.storePlace(), Warnings: fileMistakes(file.Warnings.Problems), Params: json.RawMessage(file.ParamsJSON()),
		}
		done := "stored"
		switch old.Version {
		case 0:
		case info.Version:
			got.Disposition, done = "existing", "is stored already, unchanged"
		default:
			got.Disposition, done = "changed", "changed"
		}
		if s.json() {
			return s.writeJSON(got)
		}
		if err := s.saySchedule(&info, nil, done); err != nil {
			return err
		}
		if file.nodes() != "" {
			s.printf("Each run has the files that foreach_glob matches now: submit it again when they change.\n")
		}
		worker := []string{"worker"}
		if len(s.app.Handlers) > 0 {
			worker = append(worker, "--handlers", "app,builtin")
		}
		s.printf("A worker runs it: `%s`; `%s` shows it.\n", s.command(worker...), s.command("schedule", "show", file.Name))
		return nil
	})
}

// ofOther says whose a schedule is.
func ofOther(old *weaver.ScheduleInfo) string {
	switch path := old.Metadata[metaScheduleFile]; {
	case path != "":
		return "of the file " + path
	case old.Program != "":
		return "declared by the program " + old.Program
	}
	return "which is of no file"
}

// noteSchedule says that a run of a file is beside its schedule.
func (r *pipelineRun) noteSchedule() {
	if r.file.Schedule != nil {
		r.monitor.Note("it has a schedule, %s, and is run once now, beside it: `%s` stores the schedule", r.file.Schedule, r.command("submit", r.file.given))
	}
}
