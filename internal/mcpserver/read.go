package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/task"
)

const (
	defaultRows = 20
	maxRows     = 100
	maxHistory  = 50 // attempts, decisions and steps in show_task (the last ones); effects in undo_plan (the first ones)
	maxMessage  = 500
)

func (t tools) addReads(s *mcp.Server) {
	hints := &mcp.ToolAnnotations{ReadOnlyHint: true}
	add(t, s, "counts", "Counts tasks by state, by type and by queue: n of them, or at least n where more is true.", hints, t.counts)
	add(t, s, "list_tasks", "Lists tasks, newest first, with filters.", hints, t.list)
	add(t, s, "list_jobs", "Lists jobs (runs of pipelines are jobs), newest first, with the number of their ended tasks.", hints, t.jobs)
	add(t, s, "show_task", "Shows one task: its state, attempts, decisions and steps.", hints, t.show)
	add(t, s, "why", "Explains the state of a task or job, its waits, and the actions that let it continue. It names commands of the weaver program; the tools retry, cancel and unblock do the same, if they are offered.", hints, t.why)
	add(t, s, "undo_plan", "Lists the effects of a task: first those that would be undone, in order, if it ended without success, for example by a cancel; then those that would stay; then those already undone.", hints, t.undoPlan)
	add(t, s, "logs", "Returns the output of a task's commands, or its log lines if its engine stores them; only the end of a long output.", hints, t.logs)
	add(t, s, "list_types", "Lists the task types that can be enqueued.", hints, t.types)
}

type none struct{}

func (t tools) counts(ctx context.Context, _ none) (string, error) {
	counts, err := t.Client.Counts(ctx)
	if err != nil {
		return "", err
	}
	return text(counts)
}

type listInput struct {
	States []string          `json:"states,omitempty" jsonschema:"any of: pending, ready, running, succeeded, failed, cancelled, blocked"`
	Types  []string          `json:"types,omitempty" jsonschema:"any of these task types"`
	Queue  string            `json:"queue,omitempty" jsonschema:"tasks of this queue"`
	Job    string            `json:"job,omitempty" jsonschema:"tasks of this job: its id, the beginning of it, or its name, which is the latest job of that name"`
	Labels map[string]string `json:"labels,omitempty" jsonschema:"tasks that have all these labels"`
	Limit  int               `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; default 20"`
	After  string            `json:"after,omitempty" jsonschema:"go on where a page before ended: its next"`
}

// row is a task in a list.
type row struct {
	ID      task.ID      `json:"id"`
	Type    string       `json:"type"`
	State   task.State   `json:"state"`
	Waiting task.Waiting `json:"waiting,omitempty"`
	Node    string       `json:"node,omitempty"`
	Job     task.ID      `json:"job,omitzero"`
	Queue   string       `json:"queue"`
	Attempt int          `json:"attempt"`
	Created time.Time    `json:"created"`
	Error   string       `json:"error,omitempty"`
}

func rowOf(t *task.Task) row {
	return row{t.ID, t.Type, t.State, t.Waiting, t.Node, t.JobID, t.Queue, t.AttemptNo, t.CreatedAt, said(t.Error)}
}

func said(e *task.Error) string {
	if e == nil {
		return ""
	}
	return short(string(e.Kind)+": "+e.Message, maxMessage)
}

type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // pass it as after for the next page
	Note  string `json:"note,omitempty"` // possible corrections of the filter
}

func (t tools) list(ctx context.Context, in listInput) (string, error) {
	f := weaver.Filter{Types: in.Types, Queue: in.Queue, Labels: in.Labels, Limit: in.Limit, After: in.After}
	switch {
	case in.Limit == 0:
		f.Limit = defaultRows
	case in.Limit < 0 || in.Limit > maxRows:
		return "", say("limit %d: want 1 to %d; next goes on behind them", in.Limit, maxRows)
	}
	for _, name := range in.States {
		state := task.State(name)
		if !slices.Contains(task.States(), state) {
			return "", say("unknown state %q%s; the states are %v", short(name, 64), didYouMean(name, task.States()), task.States())
		}
		f.States = append(f.States, state)
	}
	if in.Job != "" {
		id, err := t.find(ctx, Job, in.Job)
		if err != nil {
			return "", err
		}
		f.Job = id
	}
	list, next, err := t.Client.List(ctx, f)
	if err != nil {
		return "", err
	}
	redact.Tasks(list)
	p := page[row]{Items: make([]row, len(list)), Next: next}
	if len(list) == 0 && in.After == "" {
		p.Note = t.noneOf(ctx, &in)
	}
	for i := range list {
		p.Items[i] = rowOf(&list[i])
	}
	return text(p)
}

type idInput struct {
	ID string `json:"id" jsonschema:"the task: its id, the beginning of it (4 characters or more), or JOB/TASK with the name of a job and of its task"`
}

type eitherInput struct {
	ID string `json:"id" jsonschema:"the job or task: an id, the beginning of one (4 characters or more), the name of a job, which is its latest, or JOB/TASK"`
}

// view is the answer of show_task. It has named fields only, so that it never contains a value by accident.
type view struct {
	row
	Priority    int               `json:"priority"`
	Parent      task.ID           `json:"parent,omitzero"`
	Labels      map[string]string `json:"labels,omitempty"`
	Attempts    int               `json:"attempts_counted"`
	MaxAttempts int               `json:"max_attempts"`
	ReadyAt     time.Time         `json:"ready_at,omitzero"`
	Deadline    time.Time         `json:"deadline,omitzero"`
	Started     time.Time         `json:"started,omitzero"`
	Finished    time.Time         `json:"finished,omitzero"`
	Worker      string            `json:"worker,omitempty"`
	History     []attempt         `json:"attempts,omitempty"`
	Decisions   []decision        `json:"decisions,omitempty"`
	Steps       []step            `json:"steps,omitempty"`
	Input       string            `json:"input,omitempty"`
	Output      string            `json:"output,omitempty"`
	Note        string            `json:"note,omitempty"` // omissions
}

type attempt struct {
	No       int          `json:"no"`
	Started  time.Time    `json:"started"`
	Finished time.Time    `json:"finished,omitzero"`
	Outcome  task.Outcome `json:"outcome,omitempty"`
	Error    string       `json:"error,omitempty"`
}

type decision struct {
	After int               `json:"after_attempt"`
	Kind  task.DecisionKind `json:"kind"`
	Due   time.Time         `json:"due,omitzero"`
	Why   string            `json:"why"`
}

type step struct {
	Name  string         `json:"name"`
	Kind  task.StepKind  `json:"kind"`
	State task.StepState `json:"state"`
	Past  bool           `json:"past,omitempty"`
	Error string         `json:"error,omitempty"`
	Value string         `json:"value,omitempty"`
}

func (t tools) show(ctx context.Context, in idInput) (string, error) {
	id, err := t.find(ctx, Task, in.ID)
	if err != nil {
		return "", err
	}
	h, err := t.Client.History(ctx, id)
	if err != nil {
		return "", err
	}
	redact.History(&h)
	of := &h.Task
	v := view{
		row: rowOf(of), Priority: of.Priority, Parent: of.ParentID, Labels: of.Labels, Attempts: of.AttemptCount, MaxAttempts: of.MaxAttempts,
		ReadyAt: of.ReadyAt, Deadline: of.DeadlineAt, Started: of.StartedAt, Finished: of.FinishedAt, Worker: of.LeasedBy,
		Input: t.value(of.Input), Output: t.value(of.Output),
	}
	left := max(0, len(h.Attempts)-maxHistory) + max(0, len(h.Decisions)-maxHistory) + max(0, len(h.Steps)-maxHistory)
	for _, a := range last(h.Attempts) {
		v.History = append(v.History, attempt{a.No, a.StartedAt, a.FinishedAt, a.Outcome, said(a.Error)})
	}
	for _, d := range last(h.Decisions) {
		v.Decisions = append(v.Decisions, decision{d.AttemptNo, d.Kind, d.NextReadyAt, short(d.Reason.Text, maxMessage)})
	}
	for _, s := range last(h.Steps) {
		v.Steps = append(v.Steps, step{s.Name, s.Kind, s.State, s.Past(), said(s.Error), t.value(s.Value)})
	}
	if !t.ShowPayloads {
		v.Note = "values are hidden: " + t.ToShow + ". "
	}
	if left > 0 {
		v.Note += fmt.Sprintf("%d earlier attempts, decisions and steps are left out: `weaver task show %s` prints them all.", left, id)
	}
	answer, err := text(v)
	if err != nil || len(answer) <= maxText {
		return answer, err
	}
	for i := range v.Steps {
		v.Steps[i].Value = ""
	}
	v.Note += fmt.Sprintf(" The values of steps are left out, the answer would be too long: `weaver task show %s -o json` prints them.", id)
	return text(v)
}

// last returns the end of a list.
func last[T any](list []T) []T { return list[max(0, len(list)-maxHistory):] }

// value returns a value in the form that may be shown.
func (t tools) value(raw json.RawMessage) string {
	if !t.ShowPayloads {
		return ""
	}
	return short(string(raw), maxValue)
}

func (t tools) why(ctx context.Context, in eitherInput) (string, error) {
	id, err := t.find(ctx, Either, in.ID)
	if err != nil {
		return "", err
	}
	answer, err := t.Why(ctx, id)
	return short(answer, maxText), err
}

func (t tools) undoPlan(ctx context.Context, in idInput) (string, error) {
	id, err := t.find(ctx, Task, in.ID)
	if err != nil {
		return "", err
	}
	plan, err := t.Client.UndoPlan(ctx, id)
	if err != nil {
		return "", err
	}
	left := max(0, len(plan.Effects)-maxHistory)
	v := planView{
		TaskID: plan.TaskID, State: plan.State, ToUndo: plan.Open(), Effects: make([]effectView, len(plan.Effects)-left),
	}
	if plan.Phase != nil {
		v.EndsAs = plan.Phase.EndsAs
	}
	for i := range v.Effects {
		e := &plan.Effects[i]
		v.Effects[i] = effectView{e.Step, e.Round, e.Kind, e.Effect, e.Undo, e.Tries, said(e.Error), e.Key, e.At}
	}
	if left > 0 {
		v.Note = fmt.Sprintf("%d more effects are left out: `weaver why %s --undo` prints them all.", left, id)
	}
	return text(v)
}

// planView is the answer of undo_plan.
type planView struct {
	TaskID  task.ID      `json:"task_id"`
	State   task.State   `json:"state"`
	EndsAs  task.State   `json:"ends_as,omitempty"` // the undo is running or was abandoned
	ToUndo  int          `json:"to_undo"`
	Effects []effectView `json:"effects"`
	Note    string       `json:"note,omitempty"` // omissions
}

type effectView struct {
	Step   string           `json:"step"`
	Round  int              `json:"round,omitempty"`
	Kind   task.StepKind    `json:"kind"`
	Effect task.EffectState `json:"effect"`
	Undo   task.EffectUndo  `json:"undo"`
	Tries  int              `json:"tries,omitempty"`
	Error  string           `json:"error,omitempty"`
	Key    string           `json:"key,omitempty"`
	At     time.Time        `json:"at"`
}

type logsInput struct {
	ID      string `json:"id" jsonschema:"the task: its id, the beginning of it (4 characters or more), or JOB/TASK"`
	Attempt int    `json:"attempt,omitempty" jsonschema:"what this attempt wrote; default the last one"`
}

func (t tools) logs(ctx context.Context, in logsInput) (string, error) {
	id, err := t.find(ctx, Task, in.ID)
	switch {
	case err != nil:
		return "", err
	case in.Attempt < 0:
		return "", say("attempt %d: attempts are numbered from 1", in.Attempt)
	case !t.ShowPayloads:
		return "", say("logs may hold values, which are hidden here: %s, or read them with `weaver logs %s`", t.ToShow, id)
	}
	answer, before, err := t.Logs(ctx, id, in.Attempt)
	if err != nil {
		return "", err
	}
	n := max(0, len(answer)-maxText)
	if n > 0 {
		for n < len(answer) && !utf8.RuneStart(answer[n]) {
			n++
		}
		if line := strings.IndexByte(answer[n-1:], '\n'); line >= 0 && line < maxText/2 { // otherwise the line is longer than half an answer
			n += line
		}
	}
	if before+int64(n) > 0 {
		answer = fmt.Sprintf("(%d bytes before this are left out: `weaver logs %s` prints them)\n%s", before+int64(n), id, answer[n:])
	}
	return answer, nil
}

func (t tools) types(ctx context.Context, _ none) (string, error) {
	names, err := t.Types(ctx)
	if err != nil {
		return "", err
	}
	return text(page[string]{Items: names})
}
