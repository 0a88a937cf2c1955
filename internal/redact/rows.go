package redact

import (
	"encoding/json"

	"github.com/goweaver/weaver/internal/jsonnumber"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Sources of values.
const (
	Input      = "input"
	Output     = "output"
	Answer     = "answer" // of an unblock
	Step       = "step"
	Signal     = "signal"
	Checkpoint = "checkpoint"
	Log        = "log"    // the attributes of a log line
	Stream     = "stream" // a chunk of live output
)

// OfStep returns the rules for the value of a step.
func (r *Rules) OfStep(s *task.Step) *Rules { return r.With(In(Step, s.Redact)) }

// Task masks a task for readers. The caller owns the struct, but not the values that its fields point to.
func Task(t *task.Task) {
	r := New(t.Redact)
	if r == nil {
		return
	}
	texts := r.taskTexts(t)
	r.maskTask(t, texts)
}

func (r *Rules) taskTexts(t *task.Task) []string {
	return append(append(r.Texts(Input, t.Input), r.Texts(Output, t.Output)...), r.Texts(Answer, t.UnblockInput)...)
}

func (r *Rules) maskTask(t *task.Task, texts []string) {
	t.Input, t.Output, t.UnblockInput = r.JSON(Input, t.Input), r.JSON(Output, t.Output), r.JSON(Answer, t.UnblockInput)
	t.Error = Error(t.Error, texts)
	if t.Undo != nil && t.Undo.Error != nil {
		p := *t.Undo
		p.Error = Error(p.Error, texts)
		t.Undo = &p
	}
	if t.Progress != nil {
		p := *t.Progress
		p.Message = Hide(p.Message, texts)
		t.Progress = &p
	}
}

// Tasks masks a list of tasks.
func Tasks(list []task.Task) {
	for i := range list {
		Task(&list[i])
	}
}

// Error returns an error with the texts masked.
func Error(e *task.Error, texts []string) *task.Error {
	if e == nil || len(texts) == 0 {
		return e
	}
	masked := *e
	masked.Message, masked.Code, masked.Stack = Hide(e.Message, texts), Hide(e.Code, texts), Hide(e.Stack, texts)
	return &masked
}

// Secrets returns the masked texts and numbers of a task, for Hide.
func Secrets(h *store.History) []string {
	_, texts, _ := New(h.Task.Redact).ofHistory(h)
	return texts
}

// ofHistory returns the rules of each step and the texts to mask. some reports whether there are any rules.
func (r *Rules) ofHistory(h *store.History) (of []*Rules, texts []string, some bool) {
	of, some = make([]*Rules, len(h.Steps)), r != nil
	for i := range h.Steps {
		of[i] = r.OfStep(&h.Steps[i])
		some = some || of[i] != nil
	}
	if !some {
		return of, nil, false
	}
	texts = r.taskTexts(&h.Task)
	for i := range h.Steps {
		texts = append(texts, of[i].Texts(Step, h.Steps[i].Value)...)
	}
	for i := range h.Signals {
		texts = append(texts, r.Texts(Signal, h.Signals[i].Payload)...)
	}
	return of, texts, true
}

// History masks a task's history for readers. Texts that were masked when they were recorded stay masked; texts
// recorded by programs without the rules are masked here.
func History(h *store.History) {
	r := New(h.Task.Redact)
	r.artifacts(h.Artifacts)
	of, texts, some := r.ofHistory(h)
	if !some {
		return
	}
	r.maskTask(&h.Task, texts)
	for i := range h.Steps {
		s := &h.Steps[i]
		s.Value, s.Error = of[i].JSON(Step, s.Value), Error(s.Error, texts)
	}
	for i := range h.Signals {
		h.Signals[i].Payload = r.JSON(Signal, h.Signals[i].Payload)
	}
	for i := range h.Checkpoints {
		h.Checkpoints[i].Value = r.JSON(Checkpoint, h.Checkpoints[i].Value)
	}
	for i := range h.Attempts {
		h.Attempts[i].Error = Error(h.Attempts[i].Error, texts)
	}
	for i := range h.Decisions {
		reason := &h.Decisions[i].Reason
		reason.Text, reason.Change, reason.Fallback = Hide(reason.Text, texts), Hide(reason.Change, texts), Hide(reason.Fallback, texts)
		reason.Evidence = hideEvidence(reason.Evidence, texts)
	}
}

// hideEvidence masks texts in the evidence of a Decider.
func hideEvidence(e map[string]any, texts []string) map[string]any {
	if len(e) == 0 || len(texts) == 0 {
		return e
	}
	b, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	masked := map[string]any{}
	if jsonnumber.Unmarshal([]byte(Hide(string(b), texts)), &masked) != nil {
		return nil // a number was masked
	}
	jsonnumber.PlainMap(masked)
	return masked
}
