package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/pipeline/dag"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// Actions that a run can take for the job of a file.
const (
	planCreate  = "create"  // create a new job
	planResume  = "resume"  // resume the unfinished job
	planReplace = "replace" // cancel the unfinished job and create a new one
	planUpdate  = "update"  // cancel the unfinished job and create a new one with the changed tasks
)

// plan is the JSON output of a dry run.
type plan struct {
	Name     string          `json:"name"`
	File     string          `json:"file"`
	Store    string          `json:"store"`
	NewStore bool            `json:"store_would_be_created,omitempty"`
	Action   string          `json:"action"`             // create, resume, replace or update
	JobID    string          `json:"job_id,omitempty"`   // the unfinished job; with update the latest one
	Changed  bool            `json:"changed,omitempty"`  // the file differs from the resumed job
	Ended    []plannedTask   `json:"ended,omitempty"`    // tasks of a resumed job that do not run again
	Waves    [][]plannedTask `json:"waves"`              // the tasks to run; a wave waits for the waves before it
	Gone     []string        `json:"gone,omitempty"`     // tasks of earlier jobs that an updated file lacks
	Params   json.RawMessage `json:"params,omitempty"`   // of the pipeline, by name
	Warnings []fileMistake   `json:"warnings,omitempty"` // about the file

	groups map[string]string // pipeline.Groups
}

// plannedTask is a task of a plan. For a job that differs from the file it only has a name, state and needs.
type plannedTask struct {
	Name        string   `json:"name"`
	ForeachFrom string   `json:"foreach_from,omitempty"` // the task whose output has the values; this task runs once per value
	Why         string   `json:"why,omitempty"`          // the reason why an update runs it
	State       string   `json:"state,omitempty"`        // in the resumed job
	Run         string   `json:"run,omitempty"`          // the command
	HTTP        string   `json:"http,omitempty"`         // method and URL
	Approve     string   `json:"approve,omitempty"`      // the question
	Type        string   `json:"type,omitempty"`         // the task type
	Needs       []string `json:"needs,omitempty"`
	MaxAttempts int      `json:"max_attempts,omitempty"` // 0: the default of its type
	Base        string   `json:"retry_base,omitempty"`   // the first backoff, if the file sets it
	Max         string   `json:"retry_max,omitempty"`    // the longest backoff, if the file sets it
	Timeout     string   `json:"timeout,omitempty"`      // of one attempt
}

// dryRun prints the plan of a run. It changes nothing: it creates no store and migrates no schema.
func (s *session) dryRun(ctx context.Context, f *pipelineFile, flags pipelineFlags) error {
	p := &plan{Name: f.Name, File: f.given, Store: s.store(), Action: planCreate, Warnings: fileMistakes(f.Warnings.Problems)}
	err := s.withStore(ctx, false, func(st openedStore) error { return s.planOver(ctx, st, p, f, flags) })
	if errors.Is(err, errNoStore) {
		p.NewStore, err = true, nil
	}
	if err != nil {
		return err
	}
	if err := s.takeParams(ctx, nil, f); err != nil { // without a store there is no job whose params apply
		return err
	}
	if p.Action == planCreate || p.Action == planReplace {
		p.Waves = plannedWaves(f.Waves(), f.ListedNeeds(), func(name string) plannedTask { return f.planned(name) })
	}
	p.Params, p.groups = json.RawMessage(f.ParamsJSON()), f.Groups()
	if s.json() {
		return s.writeJSON(p)
	}
	s.printPlan(p)
	return nil
}

// planOver looks for the unfinished job of the file, like begin.
func (s *session) planOver(ctx context.Context, st openedStore, p *plan, f *pipelineFile, flags pipelineFlags) error {
	err := st.Ready(ctx)
	if where, perr := placeOf(s.flags.Store); perr == nil && where.madeByWork() && errors.Is(err, store.ErrNotMigrated) {
		list, lerr := st.MigrationStatus(ctx)
		if lerr == nil && !slices.ContainsFunc(list, func(m store.MigrationStatus) bool { return !isPending(m) }) {
			return nil // a run would create the schema
		}
	}
	if err != nil {
		return err
	}
	c, err := s.newClient(st, false)
	if err != nil {
		return err
	}
	if err := s.takeParams(ctx, c, f); err != nil {
		return err
	}
	jobs, err := unfinished(ctx, c, f)
	if err != nil {
		return err
	}
	if len(jobs) > 0 {
		same := jobs[0].Meta[metaDefinition] == f.Digest() && f.sameNodes(&jobs[0])
		flags = flags.over(&jobs[0], same, s.clock.Now)
	}
	undoes := len(jobs) > 0 && jobs[0].CancelRequested
	if flags.Update && !undoes {
		return p.update(ctx, c, f, flags)
	}
	if len(jobs) == 0 {
		return nil
	}
	old := &jobs[0]
	p.JobID = old.ID.String()
	p.Changed = old.Meta[metaDefinition] != f.Digest()
	switch {
	case undoes:
		p.Changed = false
	case flags.Fresh:
		p.Action, p.Changed = planReplace, false
		return nil
	case p.Changed && !flags.Resume:
		return s.changed(f, old, "run")
	}
	p.Action = planResume
	status, err := readJob(ctx, c, old.ID)
	if err != nil {
		return err
	}
	r := &pipelineRun{session: s, file: f, client: c, job: start{same: !p.Changed, nodes: f.sameNodes(old)}}
	needs, _, err := r.needs(ctx, status)
	if err != nil {
		return err
	}
	p.resume(f, status, needs)
	return nil
}

// update fills in the tasks that an update has to run.
func (p *plan) update(ctx context.Context, c *weaver.Client, f *pipelineFile, flags pipelineFlags) error {
	u, err := updateOf(ctx, c, f, flags)
	if err != nil || u.of == (weaver.JobID{}) {
		return err
	}
	p.Action, p.JobID, p.Gone = planUpdate, u.of.String(), u.Gone
	for _, name := range u.Kept {
		p.Ended = append(p.Ended, plannedTask{Name: name})
	}
	why := make(map[string]string, len(u.Run))
	run := make([]string, len(u.Run))
	for i, r := range u.Run {
		run[i], why[r.Name] = r.Name, r.Why
	}
	p.Waves = plannedWaves(dag.Waves(run, f.Needs()), f.ListedNeeds(), func(name string) plannedTask {
		t := f.planned(name)
		t.Why = why[name]
		return t
	})
	return nil
}

// resume fills in the remaining tasks of an unfinished job.
func (p *plan) resume(f *pipelineFile, status jobTasks, needs map[string][]string) {
	states := make(map[string]weaver.State, len(status.Tasks))
	var left []string
	for i := range status.Tasks {
		t := &status.Tasks[i]
		if t.Node == "" {
			continue // a task created by a handler of the job
		}
		states[t.Node] = t.State
		if t.State.Terminal() {
			p.Ended = append(p.Ended, plannedTask{Name: t.Node, State: string(t.State)})
		} else {
			left = append(left, t.Node)
		}
	}
	p.Waves = plannedWaves(dag.Waves(left, needs), needs, func(name string) plannedTask {
		planned := plannedTask{Name: name}
		if !p.Changed {
			planned = f.planned(name)
		}
		planned.State = string(states[name])
		return planned
	})
}

func plannedWaves(waves [][]string, needs map[string][]string, task func(name string) plannedTask) [][]plannedTask {
	all := make([][]plannedTask, 0, len(waves))
	for _, wave := range waves {
		tasks := make([]plannedTask, 0, len(wave))
		for _, name := range wave {
			t := task(name)
			t.Needs = needs[name]
			tasks = append(tasks, t)
		}
		all = append(all, tasks)
	}
	return all
}

// planned returns a task as the file defines it.
func (f *pipelineFile) planned(name string) plannedTask {
	if f.index == nil {
		f.index = make(map[string]int, len(f.Tasks))
		for i := range f.Tasks {
			f.index[f.Tasks[i].Name] = i
		}
	}
	i, known := f.index[name]
	if !known {
		return plannedTask{Name: name}
	}
	t := &f.Tasks[i]
	setting := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return text.Setting(d)
	}
	retry := f.RetryOf(t)
	p := plannedTask{Name: name, ForeachFrom: t.From, MaxAttempts: retry.MaxAttempts, Base: setting(retry.Base), Max: setting(retry.Max), Timeout: setting(f.TimeoutOf(t))}
	switch {
	case t.Type != "":
		p.Type = t.Does()
	case t.HTTP != nil:
		p.HTTP = t.Does()
	case t.Approve != nil:
		p.Approve = t.Does()
	default:
		p.Run = t.Does()
	}
	return p
}

// collapsed merges the nodes of one task in the same state for printing: the first node, their number, and word.
func (p *plan) collapsed(tasks []plannedTask, word string) []plannedTask {
	type kind struct{ group, state string }
	of := func(t plannedTask) kind { return kind{p.groups[t.Name], t.State} }
	count, seen := make(map[kind]int), make(map[kind]bool)
	for _, t := range tasks {
		count[of(t)]++
	}
	shown := make([]plannedTask, 0, len(tasks))
	for _, t := range tasks {
		if k := of(t); k.group != "" && count[k] >= dag.CollapseFrom {
			if seen[k] {
				continue
			}
			seen[k] = true
			t.Name = fmt.Sprintf("%s (%d)%s", k.group, count[k], word)
		}
		shown = append(shown, t)
	}
	return shown
}

func (s *session) printPlan(p *plan) {
	name, left := title(p.Name, string(p.Params)), 0
	for _, wave := range p.Waves {
		left += len(wave)
	}
	where := "in " + p.Store
	if p.NewStore {
		where += ", which would be created"
	}
	switch p.Action {
	case planResume:
		s.printf("%s: job %s would go on %s; %d of its %s have ended.\n", name, p.JobID, where, len(p.Ended), text.Plural(left+len(p.Ended), "task"))
		if p.Changed {
			s.printf("%s changed since: the job would run as it was submitted.\n", p.File)
		}
	case planUpdate:
		s.printf("%s: %d of %s would run %s; %d keep what job %s and those before it did.\n", name, left, text.Plural(left+len(p.Ended), "task"), where, len(p.Ended), p.JobID)
		for _, name := range p.Gone {
			s.printf("  %s is gone from the file\n", text.OneLine(name, explain.MaxNote))
		}
	case planReplace:
		s.printf("%s: the unfinished job %s would be cancelled, and a new job of %s begun %s.\n", name, p.JobID, text.Plural(left, "task"), where)
	default:
		s.printf("%s: a new job of %s would begin %s.\n", name, text.Plural(left, "task"), where)
	}
	if len(p.Ended) > 0 {
		s.printf("\nNot run again:\n")
		shown := p.collapsed(p.Ended, "")
		for i, t := range shown {
			if i == maxListed {
				s.printf("  … and %d more\n", len(shown)-i)
				break
			}
			if t.State == "" {
				s.printf("  %s\n", t.Name)
			} else {
				s.printf("  %s: %s\n", t.Name, t.State)
			}
		}
	}
	s.printWaves(p)
	s.printf("\nNothing was run.\n")
}

// maxListed is the maximum number of tasks that a dry run prints as text; -o json lists all.
const maxListed = 20

// printWaves lists the tasks that would run; of many tasks only the first.
func (s *session) printWaves(p *plan) {
	listed := 0
	for i, wave := range p.Waves {
		if listed == maxListed {
			left := 0
			for _, w := range p.Waves[i:] {
				left += len(w)
			}
			s.printf("\n… and %s more in %s; -o json lists all.\n", text.Plural(left, "task"), text.Plural(len(p.Waves)-i, "wave"))
			return
		}
		s.printf("\nWave %d: %s\n", i+1, text.Plural(len(wave), "task"))
		for j, t := range p.collapsed(wave, ", the first") {
			if listed == maxListed {
				s.printf("  … and %d more\n", len(p.collapsed(wave, ""))-j)
				break
			}
			listed++
			t.Needs = dag.Collapse(t.Needs, p.groups)
			s.printPlanned(t)
		}
	}
}

func (s *session) printPlanned(t plannedTask) {
	state := ""
	if t.State == string(weaver.StateRunning) || t.State == string(weaver.StateBlocked) {
		state = " (" + t.State + ")"
	}
	name := t.Name
	if t.ForeachFrom != "" {
		name = (&pipeline.Task{Name: t.Name, From: t.ForeachFrom}).Drawn()
	}
	s.printf("  %s%s\n", name, state)
	line := func(key, value string) {
		if value != "" {
			s.printf("    %-9s%s\n", key+":", strings.ReplaceAll(text.Printable(value), "\n", "\n             "))
		}
	}
	line("why", t.Why)
	line("run", t.Run)
	line("http", t.HTTP)
	line("approve", t.Approve)
	line("type", t.Type)
	line("needs", strings.Join(t.Needs, ", "))
	if t.MaxAttempts > 1 {
		retry := fmt.Sprintf("up to %d attempts", t.MaxAttempts)
		if t.Base != "" {
			retry += ", first pause " + t.Base
		}
		if t.Max != "" {
			retry += ", longest pause " + t.Max
		}
		line("retry", retry)
	}
	if t.Timeout != "" {
		line("timeout", t.Timeout+" an attempt")
	}
}
