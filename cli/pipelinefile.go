package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/plainfile"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Metadata of a job that was created from a file.
const (
	metaFile       = "weaver.file"       // the absolute path
	metaDefinition = "weaver.definition" // pipeline.Digest
	metaParams     = task.MetaParams     // pipeline.ParamsJSON, if the file has params
	metaNodes      = "weaver.nodes"      // pipelineFile.nodes, if they depend on files

	// metaScheduleFile is metaFile of the runs of a schedule: they are no jobs of the file, which `run FILE` would resume.
	metaScheduleFile = "weaver.schedule_file"
)

// pipelineFile is a pipeline file without mistakes.
type pipelineFile struct {
	*pipeline.Pipeline
	given    string // the path as typed, or stdinFile
	path     string // absolute; identifies the job together with the name and the params
	src      []byte
	inputs   fileInputs
	warnings string // warnings about the file, for people

	index map[string]int // of Tasks, by name; nil before planned is called
}

// fileInputs are the inputs for parsing a file.
type fileInputs struct {
	types   pipeline.Types
	params  map[string]string // given values
	partial bool              // params may be missing: see pipeline.Given
	include []string          // folders from which files may be included, in addition to that of the file
}

// stdinFile names the standard input. A pipeline from there is identified by its name and the current folder: its
// path is that of a file with this name in the folder.
const stdinFile = "-"

// label returns the file's name for messages.
func (f *pipelineFile) label() string { return fileLabel(f.given) }

func fileLabel(given string) string {
	if given == stdinFile {
		return "the standard input"
	}
	return given
}

// headLabel returns the prefix of lines about positions in the file.
func headLabel(given string) string { return strings.TrimPrefix(fileLabel(given), "the ") }

// lock locks the file, or the folder for the standard input.
func (f *pipelineFile) lock() (unlock func(), err error) {
	if f.given == stdinFile {
		return lockFile(filepath.Dir(f.path))
	}
	return lockFile(f.path)
}

// pipelineFlags choose the action for an unfinished job of the file.
type pipelineFlags struct {
	Resume bool `xor:"unfinished,again" help:"Resume the unfinished job, even if the file changed."`
	Fresh  bool `xor:"unfinished,again" help:"Cancel the unfinished job, and begin a new one."`
	Update bool `xor:"unfinished" help:"Keep results that the file still describes; run the rest."`

	From []string `xor:"again" sep:"none" placeholder:"TASK" help:"Task to run again, with all that need it; repeatable."`
	Only []string `xor:"again" sep:"none" placeholder:"TASK" help:"Task to run again alone; repeatable."`

	MaxAge time.Duration `placeholder:"DURATION" help:"Maximum age of a resumed job; --fresh if it is older."`
}

// AfterApply is called by kong after parsing: some flags imply others.
func (f *pipelineFlags) AfterApply() error {
	f.Update = f.Update || len(f.From)+len(f.Only) > 0
	return nil
}

// over returns the flags that apply to the unfinished job of a file. same tells whether the job matches the file.
// The flags for a job older than --max-age replace it.
func (f pipelineFlags) over(old *weaver.JobInfo, same bool, now time.Time) pipelineFlags {
	switch {
	case f.MaxAge > 0 && now.Sub(old.CreatedAt) > f.MaxAge:
		f.Fresh, f.Resume = !f.Update, false
	case same && len(f.From)+len(f.Only) == 0:
		f.Update = false // resuming the job is enough
	}
	return f
}

// maxRead limits the bytes read from a file. It is more than Parse accepts, so that the message can state the size.
const maxRead = 16 * pipeline.MaxSize

func (s *session) readPipeline(given string, in fileInputs) (*pipelineFile, error) {
	src, err := s.readFile(given)
	if err != nil {
		return nil, err
	}
	return s.checkedFile(given, src, in)
}

// checkedFile parses a file; its mistakes become an error for people.
func (s *session) checkedFile(given string, src []byte, in fileInputs) (*pipelineFile, error) {
	f, err := parseFile(given, src, in)
	var mistakes *pipeline.Error
	if errors.As(err, &mistakes) {
		return nil, &exitError{code: exitUsage, err: &mistakenFile{mistakes.Format(headLabel(given), src), given, mistakes}, advice: "nothing was run"}
	}
	return f, err
}

// readFile reads the text of a file.
func (s *session) readFile(given string) ([]byte, error) {
	src, err := s.readSource(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, badInput(fmt.Sprintf("Give the path of a YAML file; `%s run --schema` prints what it may contain.", s.app.Name), "%s: there is no such file", given)
	case err != nil:
		return nil, badInput("", "read the pipeline: %w", err)
	}
	return src, nil
}

// parseFile parses the text of a file. It returns a *pipeline.Error for mistakes.
func parseFile(given string, src []byte, in fileInputs) (*pipelineFile, error) {
	path, err := filepath.Abs(given)
	if err != nil {
		return nil, badInput("", "%s: %w", given, err)
	}
	p, err := pipeline.ParseGiven(src, pipeline.Given{
		Types: in.types, Params: in.params, Partial: in.partial, BaseDir: filepath.Dir(path), Glob: globFiles, Read: includes(path, in.include),
	})
	switch {
	case errors.As(err, new(*pipeline.Error)):
		return nil, cmp.Or(pipeline.Foreign(src), err)
	case err != nil:
		return nil, badInput("", "%s: %w", fileLabel(given), err)
	}
	return &pipelineFile{Pipeline: p, given: given, path: path, src: src, inputs: in, warnings: p.Warnings.Format(headLabel(given), src)}, nil
}

// warn prints the warnings of a file, unless -o json includes them.
func (s *session) warn(f *pipelineFile) {
	if !s.json() {
		fmt.Fprint(s.errs, text.Printable(f.warnings))
	}
}

// warningEvent is a warning in the output stream of run -o json.
type warningEvent struct {
	Event string `json:"event"` // file.warning
	File  string `json:"file"`
	fileMistake
}

// streamWarnings prints the warnings of a file as JSON objects, one per line, with -o json.
func (s *session) streamWarnings(f *pipelineFile) error {
	if !s.json() {
		return nil
	}
	enc := json.NewEncoder(s.live)
	enc.SetEscapeHTML(false)
	for _, w := range fileMistakes(f.Warnings.Problems) {
		if err := enc.Encode(warningEvent{"file.warning", f.given, w}); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

// readSource reads a file or the standard input.
func (s *session) readSource(given string) ([]byte, error) {
	if given == stdinFile {
		return io.ReadAll(io.LimitReader(s.stdin, maxRead))
	}
	return readAtMost(given, maxRead)
}

// mistakenFile is the error for a file with mistakes: several lines for people, without the program's name before
// each.
type mistakenFile struct {
	text     string
	file     string // the path as given
	mistakes *pipeline.Error
}

func (m *mistakenFile) Error() string { return m.text }

// readAtMost reads at most limit bytes of a file.
func readAtMost(path string, limit int64) (src []byte, err error) {
	f, err := plainfile.OpenStream(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, limit))
}

// newQueue returns the queue for the tasks of a new job. A run serves only that queue, so it starts no task of
// another job, not even of the same file.
func (f *pipelineFile) newQueue() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	return fmt.Sprintf("%s@%s", f.Name, hex.EncodeToString(id[:]))
}

// job returns a new job of the file, or with u only the tasks that an update runs.
func (f *pipelineFile) job(u *update) *weaver.Job {
	opts := pipeline.JobOptions{
		BaseDir:  filepath.Dir(f.path),
		Queue:    f.newQueue(),
		Types:    f.inputs.types.Known,
		Identity: f.path,
		Metadata: map[string]string{metaFile: f.path, metaDefinition: f.Digest()},
	}
	if params := f.ParamsJSON(); params != "" {
		opts.Metadata[metaParams] = params
	}
	if nodes := f.nodes(); nodes != "" {
		opts.Metadata[metaNodes] = nodes
	}
	if u != nil && u.of != (weaver.JobID{}) {
		opts.Kept, opts.Filled = u.Kept, u.filled
		opts.Metadata[metaUpdates] = u.of.String()
	}
	return f.Job(opts)
}

// start describes the job that a command begins or resumes.
type start struct {
	id      weaver.JobID // zero: no task to run
	resumed bool
	same    bool            // the job matches the current file
	nodes   bool            // the job has the current nodes of the file
	ended   *weaver.JobInfo // the latest unfinished job, as it was before --fresh, --update or --max-age cancelled it
	undoes  bool            // the job was cancelled: its undos run before a new job begins
	others  int             // further unfinished jobs of the file, which stay unchanged
	update  *update         // result of --update, nil without it; an update without tasks to run creates no job
}

// maxUpdateTries limits the attempts to plan an update. Another process may delete a job that the update is based on.
const maxUpdateTries = 3

// begin resumes the unfinished job of a file or submits a new one. Two processes that begin the same file
// concurrently get one job, because begin locks the file.
func (s *session) begin(ctx context.Context, c *weaver.Client, f *pipelineFile, verb string, flags pipelineFlags) (start, error) {
	unlock, err := f.lock()
	if err != nil {
		return start{}, badInput("", "lock %s: %w", f.label(), err)
	}
	defer unlock()
	if flags.MaxAge < 0 {
		return start{}, badInput("", "--max-age %s: want a positive duration", flags.MaxAge)
	}
	if err := s.takeParams(ctx, c, f); err != nil {
		return start{}, err
	}
	jobs, err := unfinished(ctx, c, f)
	if err != nil {
		return start{}, err
	}
	if len(flags.From)+len(flags.Only) > 0 { // before any job is cancelled
		if _, err := updateOf(ctx, c, f, flags); err != nil {
			return start{}, err
		}
	}
	st := start{same: true, nodes: true}
	if len(jobs) > 0 {
		old := &jobs[0]
		if old.CancelRequested { // its undos run first
			return start{id: old.ID, resumed: true, same: true, nodes: true, undoes: true, others: len(jobs) - 1}, nil
		}
		st.same = old.Meta[metaDefinition] == f.Digest()
		st.nodes = f.sameNodes(old)
		flags = flags.over(old, st.same && st.nodes, s.clock.Now)
		switch {
		case !st.same && !flags.Resume && !flags.Fresh && !flags.Update:
			return start{}, s.changed(f, old, verb)
		case !flags.Fresh && !flags.Update:
			st.id, st.resumed, st.others = old.ID, true, len(jobs)-1
			return st, nil
		}
		for i := range jobs {
			if err := s.replace(ctx, c, jobs[i].ID, f); err != nil {
				return start{}, err
			}
			left, err := undosLeft(ctx, c, jobs[i].ID)
			if err != nil {
				return start{}, err
			}
			if left {
				return start{id: jobs[i].ID, resumed: true, same: true, nodes: true, undoes: true, others: len(jobs) - 1}, nil
			}
		}
		st.ended, st.same, st.nodes = old, true, true
	}
	var h *weaver.JobHandle
	for tries := 0; ; tries++ {
		if flags.Update {
			if st.update, err = updateOf(ctx, c, f, flags); err != nil || len(st.update.Run) == 0 {
				return st, err
			}
		}
		if len(f.Tasks) == 0 {
			return st, nil
		}
		job := f.job(st.update)
		job.BasedOn(st.update.basedOn()...)
		h, err = c.Submit(ctx, job)
		if !errors.Is(err, weaver.ErrNotFound) || tries == maxUpdateTries {
			break
		}
		// A job that the update is based on was deleted after it was read.
	}
	switch {
	case errors.Is(err, weaver.ErrInvalidJob), errors.Is(err, weaver.ErrInvalidInput):
		return start{}, badInput("", "%s: %w", f.label(), err)
	case err != nil:
		return start{}, err
	}
	st.id = h.ID()
	return st, nil
}

// endWithin is the time that --fresh waits for the commands of the cancelled job: their grace period plus some delay.
const endWithin = 15 * time.Second

// replace cancels the unfinished job of a file and waits until no task of it runs: two jobs of one file would work on
// the same files.
func (s *session) replace(ctx context.Context, c *weaver.Client, id weaver.JobID, f *pipelineFile) error {
	who, why := weaver.By(auditFlags{}.who()), weaver.Reason("a fresh job of "+f.path+" was begun")
	ack, err := c.CancelJob(ctx, id, who, why)
	if err != nil || ack.Asked == 0 {
		return err
	}
	// Tasks of a killed process end when they are reaped. Without a proof of its death a new worker may not reap
	// them; then Force ends them below.
	reaper := store.WorkerInfo{ID: store.WorkerID(task.NewIDs(nil).New().String()), Name: "fresh", TTL: store.DefaultLease}
	if err := c.Store().Join(ctx, c.Namespace(), reaper); err != nil {
		return err
	}
	defer func() { _ = c.Store().Leave(context.WithoutCancel(ctx), c.Namespace(), reaper.ID) }()
	if _, err := c.Store().Reap(ctx, c.Namespace(), store.ReapRequest{Worker: reaper.ID, TTL: reaper.TTL, CrashBudget: -1}); err != nil {
		return err
	}
	grace, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	_, err = c.WaitJob(grace, id)
	if ctx.Err() != nil || grace.Err() == nil {
		return err
	}
	// The worker is silent. Force revokes the lease: a worker that comes back can write nothing, and kills its
	// commands.
	tasks, err := c.JobTasks(ctx, id)
	for i := range tasks {
		if err == nil && tasks[i].State == task.Running && tasks[i].Undo == nil {
			err = c.Cancel(ctx, tasks[i].ID, who, why, weaver.Force())
		}
	}
	return err
}

// unfinished returns the unfinished jobs of a file with its params, latest first. Several exist if a job is retried
// after another one began. A job that is being cancelled counts only while undos are left; then it comes first.
func unfinished(ctx context.Context, c *weaver.Client, f *pipelineFile) (found []weaver.JobInfo, err error) {
	var cancelled []weaver.JobInfo
	err = eachJob(ctx, c, f.Name, func(j *weaver.JobInfo) bool {
		switch {
		case !f.isOf(j):
		case j.CancelRequested:
			cancelled = append(cancelled, *j)
		default:
			found = append(found, *j)
		}
		return true
	}, task.JobRunning, task.JobBlocked)
	for i := range cancelled {
		left, undoErr := undosLeft(ctx, c, cancelled[i].ID)
		if err = cmp.Or(err, undoErr); err == nil && left {
			found = slices.Insert(found, 0, cancelled[i])
		}
	}
	return found, err
}

// undosLeft reports whether undos of a job's tasks have not ended.
func undosLeft(ctx context.Context, c *weaver.Client, id weaver.JobID) (bool, error) {
	tasks, err := c.JobTasks(ctx, id)
	return slices.ContainsFunc(tasks, func(t task.Task) bool { return t.Undo.Runs() && !t.State.Terminal() }), err
}

// eachJob calls use for the jobs with a name, latest first, until use returns false. It visits the given states, or
// all.
func eachJob(ctx context.Context, c *weaver.Client, name string, use func(*weaver.JobInfo) bool, states ...task.JobState) error {
	filter := store.JobFilter{Name: name, States: states, Limit: store.MaxLimit}
	for {
		jobs, next, err := c.Jobs(ctx, filter)
		if err != nil {
			return err
		}
		for i := range jobs {
			if !use(&jobs[i]) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		filter.After = next
	}
}

// changed returns an error if the file differs from its unfinished job.
func (s *session) changed(f *pipelineFile, old *weaver.JobInfo, verb string) error {
	again := s.again(f, verb)
	return badInput(
		fmt.Sprintf("Run `%s --update` to keep what it did that did not change and run the rest, `--resume` to go on with the job as it was submitted, or `--fresh` to cancel it and begin a new one.", again),
		"%s changed since its job %s was submitted (%s), and that job is unfinished: %d of its %d tasks have ended",
		f.label(), old.ID, s.clock.Rel(old.CreatedAt), old.Counters.Total-old.Counters.Unfinished, old.Counters.Total)
}
