package pipeline

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/task"
)

// JobOptions are the settings of a job that are not in the file.
type JobOptions struct {
	// BaseDir is an absolute directory: directories of the file are relative to it,
	// and it is the default directory of commands. Default: the worker's directory.
	BaseDir  string
	Queue    string            // of tasks whose type has no queue; default "default"
	Metadata map[string]string // of the job

	// Identity identifies the file, by its absolute path: the jobs of one file share
	// the limits of max_parallel.
	Identity string

	// Kept are the tasks to leave out because an earlier job did their work. Other
	// tasks do not need them either.
	Kept []string
	// Filled holds tasks with the values of kept tasks filled in, by name: see
	// Pipeline.Fill.
	Filled map[string]*Task

	// Types are the task types of the program, by name. Tasks have the options of
	// their type unless the file overrides them.
	Types map[string]weaver.Handler
}

// Types describes the task types of a program.
type Types struct {
	// Known holds the types whose inputs can be checked, by name.
	Known map[string]weaver.Handler
	// Unknown returns the problem with an unknown type and a hint, or "". If nil,
	// every type is accepted.
	Unknown func(typeName string) (problem, hint string)
}

// ofJob converts the budget.
func (b *Budget) ofJob() weaver.Budget {
	return weaver.Budget{
		MaxAttemptsPerTask: b.MaxAttemptsPerTask, MaxTotalAttempts: b.MaxTotalAttempts, MaxDuration: b.MaxDuration,
		MaxCost: int64(b.MaxCost), MaxRepairs: b.MaxRepairs, MaxNoProgress: b.MaxNoProgress,
	}
}

// Job returns the job of the pipeline, with tasks in the order of the file.
func (p *Pipeline) Job(opts JobOptions) *weaver.Job {
	job := weaver.NewJob(p.Name, p.Budget.ofJob())
	for _, key := range slices.Sorted(maps.Keys(opts.Metadata)) {
		job.Metadata(key, opts.Metadata[key])
	}
	if p.Parallel > 0 {
		job.MaxParallel(p.Parallel)
	}
	kept := make(map[string]bool, len(opts.Kept))
	for _, name := range opts.Kept {
		kept[name] = true
	}
	undone := make(map[string]string) // by name of the undo
	for i := range p.Tasks {
		undone[p.Tasks[i].Name] = p.Tasks[i].Undoes
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if kept[t.Name] || kept[t.Undoes] {
			continue
		}
		d := p.definition(cmp.Or(opts.Filled[t.Name], t), opts.BaseDir)
		if d.MaxParallel > 0 && d.ForeachFrom == "" {
			d.ConcurrencyKey, d.ConcurrencyLimit = p.parallelKey(opts.Identity, t.Group), d.MaxParallel
		}
		isKept := func(name string) bool { return kept[name] || kept[undone[name]] }
		d.Needs, d.After = slices.DeleteFunc(slices.Clone(d.Needs), isKept), slices.DeleteFunc(slices.Clone(d.After), isKept)
		job.Add(d.Name, d.draft(opts, weaver.Metadata(MetaWork, p.work(t))), d.nodeOptions(job)...)
	}
	return job
}

// definition is a task with the settings of its pipeline. Job builds drafts from
// definitions only, and Digest covers all of them: a change of what runs always
// changes the digest.
type definition struct {
	Name             string                `json:"name"`
	Run              *builtin.RunInput     `json:"run,omitempty"`
	Request          *builtin.RequestInput `json:"request,omitempty"`
	Approve          *builtin.ApproveInput `json:"approve,omitempty"`
	Type             string                `json:"type,omitempty"`
	Input            json.RawMessage       `json:"input,omitempty"`
	Needs            []string              `json:"needs,omitempty"`
	After            []string              `json:"after,omitempty"`
	Undoes           string                `json:"undoes,omitempty"`
	Undo             *definition           `json:"undo,omitempty"` // of an unexpanded task whose nodes depend on files
	If               task.EdgeKind         `json:"if,omitempty"`
	AllowFailure     bool                  `json:"allow_failure,omitempty"`
	MaxAttempts      int                   `json:"max_attempts"`
	OwnAttempts      bool                  `json:"own_attempts,omitempty"` // of a task with a type: the file sets the number of attempts
	Backoff          time.Duration         `json:"backoff_ns,omitempty"`
	BackoffMax       time.Duration         `json:"backoff_max_ns,omitempty"`
	Timeout          time.Duration         `json:"timeout_ns,omitempty"`
	Labels           map[string]string     `json:"labels,omitempty"`
	ConcurrencyKey   string                `json:"concurrency_key,omitempty"`
	ConcurrencyLimit int                   `json:"concurrency_limit,omitempty"`
	Priority         int                   `json:"priority,omitempty"`
	task.Options
	MaxParallel int               `json:"max_parallel,omitempty"`
	Patterns    []string          `json:"foreach_glob,omitempty"` // of an unexpanded task
	ForeachFrom string            `json:"foreach_from,omitempty"` // Run or Request runs once for each value
	Values      []json.RawMessage `json:"values,omitempty"`       // of ForeachFrom in an update; nil: unknown
}

// definition resolves the settings of a task. The number of attempts comes from
// the task, else the pipeline, else the budget, else it is 1: not every command
// may run twice.
func (p *Pipeline) definition(t *Task, baseDir string) definition {
	p = p.defaults(t)
	if t.from != nil {
		baseDir = resolve(baseDir, t.folder)
	}
	d := definition{
		Name:             t.Name,
		Request:          t.HTTP,
		Approve:          t.Approve,
		Type:             t.Type,
		Input:            t.Input,
		Needs:            t.Needs,
		After:            t.After,
		Undoes:           t.Undoes,
		If:               t.If,
		AllowFailure:     t.AllowFailure,
		MaxAttempts:      cmp.Or(t.Retry.MaxAttempts, p.Retry.MaxAttempts, p.Budget.MaxAttemptsPerTask, 1),
		Backoff:          cmp.Or(t.Retry.Base, p.Retry.Base),
		BackoffMax:       cmp.Or(t.Retry.Max, p.Retry.Max),
		Timeout:          cmp.Or(t.Timeout, p.Timeout),
		Labels:           merge(p.Labels, t.Labels),
		ConcurrencyKey:   t.ConcurrencyKey,
		ConcurrencyLimit: t.ConcurrencyLimit,
		Priority:         t.Priority,
		Options:          t.Options,
		MaxParallel:      t.MaxParallel,
		Patterns:         t.patterns,
		ForeachFrom:      t.From,
		Values:           t.Values,
	}
	if len(t.patterns) > 0 && t.Undo != nil {
		undo := p.definition(t.Undo, baseDir)
		d.Undo = &undo
	}
	if t.Approve != nil { // it waits outside its attempts
		d.MaxAttempts, d.Backoff, d.BackoffMax, d.Timeout = 1, 0, 0, 0
	}
	if t.HTTP != nil && t.HTTP.Until != nil { // the poll has its own limit
		d.Timeout = 0
	}
	if t.Type != "" {
		d.OwnAttempts = t.Retry.MaxAttempts > 0 || p.Retry.MaxAttempts > 0
		if t.Input == nil {
			d.Input = json.RawMessage("null") // decodes into the zero value of any input
		}
	}
	if file := cmp.Or(t.EnvFile, p.EnvFile); t.HTTP != nil && len(t.HTTP.HeadersEnv) > 0 && file != "" {
		request := *t.HTTP
		request.EnvFile = resolve(baseDir, file)
		d.Request = &request
	}
	if t.Shell != "" || t.Argv != nil {
		d.Run = &builtin.RunInput{
			Argv:       t.Argv,
			Shell:      t.Shell,
			Env:        merge(p.envFor(t), t.Env),
			Templates:  t.Templates,
			InheritEnv: union(p.InheritEnv, t.InheritEnv),
			SecretEnv:  union(p.SecretEnv, t.SecretEnv),
			Dir:        resolve(baseDir, cmp.Or(t.Dir, p.Dir)),

			Artifacts:         t.Artifacts,
			ArtifactsOptional: t.ArtifactsOptional,
			ArtifactsTTL:      builtin.Duration(t.ArtifactsTTL),
		}
		if file := cmp.Or(t.EnvFile, p.EnvFile); file != "" {
			d.Run.EnvFile = resolve(baseDir, file)
		}
	}
	return d
}

// draft returns the draft of the task. A task of a known type has the type's
// options unless the file overrides them. It keeps the type's queue unless that is
// the default queue, and the type's attempts unless the type is a builtin one:
// commands may not run twice by default.
func (d definition) draft(job JobOptions, more ...weaver.EnqueueOption) weaver.Draft {
	h, known := job.Types[d.Type]
	builtIn := d.Type == builtin.Run.Name() || d.Type == builtin.Request.Name() || d.Type == builtin.Approve.Name() || d.Type == builtin.Foreach.Name()
	said := d
	if known && !d.OwnAttempts && !builtIn {
		said.MaxAttempts = 0
	}
	if d.ForeachFrom != "" { // applies to its nodes
		said.ConcurrencyKey, said.ConcurrencyLimit = "", 0
	}
	opts := append(option.Given[weaver.EnqueueOption](&said), more...)
	if job.Queue != "" && (!known || h.Queue() == task.DefaultQueue) {
		opts = append(opts, weaver.Queue(job.Queue))
	}
	switch {
	case d.ForeachFrom != "":
		return builtin.Foreach.With(d.foreach(), opts...)
	case d.Run != nil:
		return builtin.Run.With(*d.Run, opts...)
	case d.Request != nil:
		return builtin.Request.With(*d.Request, opts...)
	case d.Approve != nil:
		return builtin.Approve.With(*d.Approve, opts...)
	}
	if known {
		return h.Draft(d.Input, opts...)
	}
	return weaver.NewDraft(d.Type, d.Input, opts...)
}

// merge returns the union of a and b; entries of b override.
func merge(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}
	m := make(map[string]string, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// union returns the names of both, sorted.
func union(a, b []string) []string {
	names := slices.Sorted(slices.Values(slices.Concat(a, b)))
	return slices.Compact(names)
}

// resolve returns dir relative to base, absolute if base is.
func resolve(base, dir string) string {
	switch {
	case dir == "":
		return base
	case filepath.IsAbs(dir), base == "":
		return filepath.Clean(dir)
	}
	return filepath.Join(base, dir)
}
