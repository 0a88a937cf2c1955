package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// taskShowCmd is the verb task show.
type taskShowCmd struct {
	ID string `arg:"" name:"id" help:"Task: ID, ID prefix, or JOB/TASK."`
}

// taskView is the JSON output of task show: the fields of the task and its records.
type taskView struct {
	task.Task
	Attempts  []task.Attempt  `json:"attempts"`
	Decisions []task.Decision `json:"decisions"`
	Steps     []task.Step     `json:"steps"`
	Signals   []task.Signal   `json:"signals,omitempty"`

	Checkpoints []task.Checkpoint  `json:"checkpoints,omitempty"`
	Artifacts   []task.Artifact    `json:"artifacts,omitempty"`
	Needs       []store.Need       `json:"needs,omitempty"`
	Dependents  []store.Need       `json:"dependents,omitempty"`
	Audit       []store.AuditEntry `json:"audit,omitempty"`
	Holders     []task.ID          `json:"key_holders,omitempty"`
	Ahead       task.ID            `json:"key_ahead,omitzero"`
	TaskPause   *store.AuditEntry  `json:"task_pause,omitempty"`
	TypePause   *store.AuditEntry  `json:"type_pause,omitempty"`
	QueuePause  *store.AuditEntry  `json:"queue_pause,omitempty"`
	Gone        bool               `json:"process_gone,omitempty"` // its worker process is known to be dead
}

// Run implements the verb.
func (c *taskShowCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantTask, c.ID)
		if err != nil {
			return err
		}
		h, err := masked(client).History(ctx, id)
		if err != nil {
			return s.absent(ctx, client, "task", id, err)
		}
		if s.clock.OfJob, err = s.explains(masked(client)).JobOf(ctx, &h.Task); err != nil {
			return err
		}
		if err := s.explains(masked(client)).FindGone(ctx, s.clock, &h.Task); err != nil {
			return err
		}
		if s.json() {
			loadValues(ctx, client, &h)
			v := viewOf(&h)
			_, v.Gone = s.clock.Gone[id]
			return s.writeJSON(v)
		}
		s.printTask(&h, func(raw json.RawMessage) string { return s.shownValue(ctx, client, raw) })
		return nil
	})
}

func viewOf(h *store.History) taskView {
	return taskView{
		Task: h.Task, Attempts: orEmpty(h.Attempts), Decisions: orEmpty(h.Decisions), Steps: orEmpty(h.Steps), Signals: h.Signals, Checkpoints: h.Checkpoints, Artifacts: h.Artifacts,
		Needs: h.Needs, Dependents: h.Dependents, Audit: h.Audit, Holders: h.Holders, Ahead: h.Ahead,
		TaskPause: h.TaskPause, TypePause: h.TypePause, QueuePause: h.QueuePause,
	}
}

// orEmpty makes a nil list print as [].
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

const fieldWidth = 15

// field prints a named value unless it is empty.
func (s *session) field(name, value string) {
	if value != "" {
		s.printf("%s%*s%s\n", s.paint.Paint(text.Bold, name), fieldWidth-len(name), "", value)
	}
}

// stateField prints a state and its meaning below.
func (s *session) stateField(state, meaning string) {
	s.field("state", s.paint.Paint(text.StateColor(state), state))
	s.field("", text.Stop("It "+meaning))
}

func (s *session) heading(what string) { s.printf("\n%s\n", s.paint.Paint(text.Bold, what)) }

// printTask prints a task; value formats its input or output.
func (s *session) printTask(h *store.History, value func(json.RawMessage) string) {
	t, c := &h.Task, s.clock
	s.printf("%s\n\n", s.paint.Paint(text.Bold, fmt.Sprintf("Task %s, of type %s", t.ID, t.Type)))
	s.stateField(string(t.State), c.TaskState(h))
	if from := explain.RerunFrom(h); from != "" {
		s.field("way out", fmt.Sprintf("`%s` makes a task that runs it anew", s.command("task", "rerun", t.ID.String(), "--from", from)))
	}
	if !t.JobID.IsZero() {
		s.field("job", fmt.Sprintf("%s, as %q", t.JobID, text.OneLine(t.Node, explain.MaxNote)))
	}
	s.field("started by", t.ParentID.String())
	s.field("rerun of", t.RerunOf.String())
	s.field("undoes", t.UndoOf.String())
	s.field("queue", fmt.Sprintf("%s, priority %d", text.OneLine(t.Queue, explain.MaxNote), t.Priority))
	s.field("attempts", fmt.Sprintf("%d of %d used, %d made", t.AttemptCount, t.MaxAttempts, t.AttemptNo))
	if t.RepairCount > 0 {
		s.field("repairs", fmt.Sprintf("%d of %d used", t.RepairCount, t.MaxRepairs))
	}
	s.field("cost", explain.Cost(t))
	if t.CrashCount > 0 {
		s.field("crashes", fmt.Sprintf("%d in a row", t.CrashCount))
	}
	if t.Progress != nil {
		s.field("progress", explain.Progress(t.Progress, explain.MaxNote))
	}
	s.field("due", c.When(t.ReadyAt))
	s.field("deadline", c.When(t.DeadlineAt))
	if t.Timeout > 0 {
		s.field("timeout", text.Setting(t.Timeout)+" per attempt")
	}
	if t.AllowFailure {
		s.field("failure", "its job allows it")
	}
	for _, o := range option.All() {
		if o.Label != "" {
			s.field(o.Label, optionValue(o, t))
		}
	}
	s.field("undo", s.clock.Undo(t))
	s.field("backoff", fmt.Sprintf("%s, doubling up to %s", text.Setting(t.Backoff), text.Setting(t.BackoffMax)))
	if t.State == task.Running {
		s.field("lease", fmt.Sprintf("epoch %d, held by %s, ends %s", t.Epoch, text.OneLine(t.LeasedBy, explain.MaxNote), c.When(t.LeaseExpiresAt)))
	}
	if t.CancelRequested {
		kind := t.CancelKind
		switch kind {
		case task.KindParentEnded:
			kind = task.KindCancelled
		case task.KindJobBudget:
			kind = task.KindBudget
		}
		s.field("asked to end", string(kind)+explain.By(t.CancelBy, t.CancelReason))
	}
	if t.ConcurrencyKey != "" {
		s.field("concurrency", fmt.Sprintf("key %q, %d at once", text.OneLine(t.ConcurrencyKey, explain.MaxNote), t.ConcurrencyLimit))
	}
	s.field("idempotency", text.OneLine(t.IdempotencyKey, explain.MaxNote))
	s.field("labels", pairs(t.Labels))
	s.field("metadata", pairs(t.Metadata))
	s.field("created", c.When(t.CreatedAt))
	s.field("started", c.When(t.StartedAt))
	s.field("finished", c.When(t.FinishedAt))
	s.field("values", valuesGone(t))
	s.field("input", fmt.Sprintf("%s (schema version %d)", value(t.Input), t.SchemaVersion))
	s.field("unblock input", jsonText(t.UnblockInput))
	s.field("output", value(t.Output))
	s.printError(t.Error)
	s.showUndo(h)
	s.printHistory(h)
}

// optionValue returns the value of an option, or "" if it is not set.
func optionValue(o *option.Spec, t *task.Task) string {
	switch v := o.Value(t).(type) {
	case nil:
		return ""
	case bool:
		return o.On
	case string:
		return text.OneLine(v, explain.MaxNote)
	default:
		return fmt.Sprint(v)
	}
}

// valuesGone says why a task no longer has its input and output.
func valuesGone(t *task.Task) string {
	switch {
	case t.Forgotten:
		return "erased: the task was forgotten"
	case t.ValuesDropped:
		return "dropped by a rule of retention"
	}
	return ""
}

func (s *session) printError(e *task.Error) {
	if e == nil {
		return
	}
	s.heading("Error")
	said := e.Message
	if !e.SaysKind() {
		said = explain.FailureHead(e) + ": " + said
	}
	s.printf("%s\n", indent("  ", text.Printable(said)))
	if e.Stack != "" {
		s.printf("%s\n", indent("    ", text.Printable(e.Stack)))
	}
}

func (s *session) printHistory(h *store.History) {
	s.section("Attempts", s.attemptTable(h.Attempts))
	s.section("Decisions", s.decisionTable(h.Decisions))
	s.section("Steps", s.stepTable(h.Steps))
	s.section("Checkpoints", s.checkpointTable(h.Checkpoints))
	artifacts := make([]listedArtifact, len(h.Artifacts))
	for i := range artifacts {
		artifacts[i] = listedArtifact{h.Artifacts[i], h.Task.Node}
	}
	s.section("Artifacts", s.artifactTable(artifacts))
	s.section("Signals", s.signalTable(h.Signals))
	s.section("Needs", s.needTable(h.Needs))
	s.section("Needed by", s.needTable(h.Dependents))
	s.section("Operators", s.auditTable(h.Audit))
}

// list prints a table as the whole result.
func (s *session) list(t *table) {
	t.fit(s.width)
	t.print(s.out, s.paint, "")
}

// when formats an instant for tables.
func (s *session) when(t time.Time) cell {
	if t.IsZero() {
		return cell{}
	}
	return cell{text: s.clock.When(t), short: s.clock.Rel(t)}
}

// section prints a table under a heading, unless it has no rows.
func (s *session) section(title string, t *table) {
	if len(t.rows) > 0 {
		s.heading(title)
		t.fit(s.width - len("  "))
		t.print(s.out, s.paint, "  ")
	}
}

func (s *session) attemptTable(attempts []task.Attempt) *table {
	columns := []string{"NO", "STARTED", "TOOK", "OUTCOME", "WORKER", "CODE", "ERROR"}
	routed := slices.ContainsFunc(attempts, func(a task.Attempt) bool { return a.Handler != "" || a.RouteReason != "" })
	if routed {
		columns = append(columns, "HANDLER")
	}
	t := newTable(columns...)
	for i := range attempts {
		a := &attempts[i]
		outcome, lasted, problem := string(a.Outcome), text.Took(a.FinishedAt.Sub(a.StartedAt)), ""
		if a.FinishedAt.IsZero() {
			outcome, lasted = "running", text.Took(s.clock.Now.Sub(a.StartedAt))
		}
		if a.Error != nil {
			problem = explain.Failure(a.Error, explain.MaxNote)
		}
		row := []cell{
			plain(fmt.Sprint(a.No)), plain(s.clock.When(a.StartedAt)), plain(lasted), plain(outcome),
			plain(text.OneLine(a.Worker, explain.MaxNote)), plain(number(a.CodeVersion)), plain(problem),
		}
		if routed {
			row = append(row, plain(explain.Routed(a)))
		}
		t.add(row...)
	}
	return t
}

// number formats zero as "".
func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (s *session) decisionTable(decisions []task.Decision) *table {
	t := newTable("AFTER", "DECISION", "DUE", "POLICY", "REASON")
	for _, d := range decisions {
		t.add(plain(fmt.Sprintf("attempt %d", d.AttemptNo)), plain(string(d.Kind)), plain(s.clock.When(d.NextReadyAt)),
			plain(fmt.Sprintf("%s v%d", text.OneLine(d.Reason.Policy, explain.MaxNote), d.Reason.Version)), plain(text.OneLine(d.Reason.Text, explain.MaxMessage)))
	}
	return t
}

func (s *session) stepTable(steps []task.Step) *table {
	t := newTable("NO", "NAME", "KIND", "STATE", "ATTEMPT", "TRY", "TOOK", "RESULT")
	for i := range steps {
		st := &steps[i]
		result := cmp.Or(largeNote(st.Value), text.OneLine(text.PlainJSON(string(st.Value)), explain.MaxNote))
		switch {
		case st.Error != nil:
			result = explain.Failure(&task.Error{Kind: st.Error.Kind, Message: st.Error.Message}, explain.MaxNote) // the row names the step
		default:
			result = cmp.Or(s.clock.StepWait(st), result)
		}
		color, state := "", string(st.State)
		if st.State == task.StepFailed {
			color = text.Red
		}
		if st.Past() {
			state += ", past"
		}
		t.add(plain(fmt.Sprint(st.Index)), plain(text.OneLine(st.Name, explain.MaxNote)), plain(string(st.Kind)), painted(state, color),
			plain(attemptOf(st)), plain(fmt.Sprint(st.Try)), plain(stepTook(st)), plain(result))
	}
	return t
}

func (s *session) signalTable(signals []task.Signal) *table {
	t := newTable("NAME", "SENT", "BY", "KEY", "TAKEN BY", "PAYLOAD")
	for i := range signals {
		sig := &signals[i]
		t.add(plain(text.OneLine(sig.Name, explain.MaxNote)), s.when(sig.SentAt), plain(text.OneLine(sig.Actor, explain.MaxNote)), plain(text.OneLine(sig.Key, explain.MaxNote)),
			plain(text.OneLine(sig.Step, explain.MaxNote)), plain(text.OneLine(text.PlainJSON(string(sig.Payload)), explain.MaxNote)))
	}
	return t
}

func (s *session) checkpointTable(checkpoints []task.Checkpoint) *table {
	t := newTable("NAME", "SAVED", "ATTEMPT", "VALUE")
	for i := range checkpoints {
		cp := &checkpoints[i]
		t.add(plain(text.OneLine(cp.Name, explain.MaxNote)), s.when(cp.SavedAt), plain(fmt.Sprint(cp.AttemptNo)),
			plain(text.OneLine(text.PlainJSON(string(cp.Value)), explain.MaxNote)))
	}
	return t
}

func stepTook(st *task.Step) string {
	if st.Kind != task.KindStep || st.CompletedAt.IsZero() {
		return ""
	}
	return text.Took(st.CompletedAt.Sub(st.StartedAt))
}

func (s *session) needTable(needs []store.Need) *table {
	t := newTable("ID", "NAME", "IF", "STATE")
	for _, n := range needs {
		t.add(plain(n.ID.String()), plain(text.OneLine(n.Node, explain.MaxNote)), plain(string(n.Kind)), painted(string(n.State), text.StateColor(n.State)))
	}
	return t
}

func (s *session) auditTable(entries []store.AuditEntry) *table {
	t := newTable("AT", "WHO", "DID", "WHY")
	for _, a := range entries {
		t.add(plain(s.clock.When(a.At)), plain(text.OneLine(a.Actor, explain.MaxNote)), plain(a.Verb), plain(text.OneLine(a.Reason, explain.MaxMessage)))
	}
	return t
}

// attemptOf returns the attempt that recorded a step; "-" for a step taken over from another task.
func attemptOf(st *task.Step) string {
	if st.AttemptNo == 0 {
		return "-"
	}
	return fmt.Sprint(st.AttemptNo)
}
