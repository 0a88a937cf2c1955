package engine

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// redaction holds the data of an attempt that only its handler may see. It is masked in events, log lines and error
// texts. Masked in texts are strings seen earlier in masked values: of the input and of steps.
type redaction struct {
	rules *redact.Rules

	mu    sync.Mutex
	texts []string
}

// maxHidden is the maximum number of strings to mask in texts.
const maxHidden = 1000

// redacts sets the patterns of an attempt: those of the task, the engine and the handler's type, because the task may
// have been enqueued without the latter.
func (a *Attempt) redacts(h *Handler, steps []task.Step) {
	r := &a.redaction
	r.rules = redact.New(a.task.Redact, a.env.Redact, h.Redact)
	a.hideTexts(r.rules.Texts(redact.Input, a.task.Input))
	a.hideTexts(r.rules.Texts(redact.Answer, a.task.UnblockInput))
	for i := range steps {
		a.hideTexts(r.rules.OfStep(&steps[i]).Texts(redact.Step, steps[i].Value))
	}
}

// recorded returns the steps at the start of the attempt. It is called before the handler.
func (a *Attempt) recorded() []task.Step {
	var list []task.Step
	for _, known := range a.journal {
		if known.done != nil {
			list = append(list, *known.done)
		}
	}
	return list
}

// hideTexts adds strings to mask from now on, the longest first.
func (a *Attempt) hideTexts(texts []string) {
	if len(texts) == 0 {
		return
	}
	r := &a.redaction
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.texts) // readers hold the old one
	for _, t := range texts {
		if !slices.Contains(list, t) && len(list) < maxHidden {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(x, y string) int { return len(y) - len(x) })
	r.texts = list
}

// hidden returns the strings to mask.
func (a *Attempt) hidden() []string {
	r := &a.redaction
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.texts
}

// hide masks a text.
func (a *Attempt) hide(s string) string { return redact.Hide(s, a.hidden()) }

// HideIn masks in texts, from now on, the strings in this value that the patterns of the attempt's steps mask.
func (a *Attempt) HideIn(value json.RawMessage) {
	a.hideTexts(a.redaction.rules.Texts(redact.Step, value))
}

// HiddenIn returns a text masked as in errors and log lines.
func (a *Attempt) HiddenIn(text string) string { return a.hide(text) }

// completedStep hides the masked strings of a step's value.
func (a *Attempt) completedStep(s *task.Step) {
	a.hideTexts(a.redaction.rules.OfStep(s).Texts(redact.Step, s.Value))
}

// stepOutput returns the value of a step as shown in events.
func (a *Attempt) stepOutput(s *task.Step) json.RawMessage {
	return a.redaction.rules.OfStep(s).JSON(redact.Step, s.Value)
}

// masked returns an event with masked data. Errors, reports and values of steps were masked when they were created.
func (a *Attempt) masked(ev event.Event) event.Event {
	rules := a.redaction.rules
	switch e := ev.(type) {
	case event.TaskStarted:
		e.Input = rules.JSON(redact.Input, e.Input)
		return e
	case event.TaskSucceeded:
		e.Output = rules.JSON(redact.Output, e.Output)
		return e
	case event.StreamChunk:
		e.Data = a.maskAny(redact.Stream, e.Data)
		return e
	}
	return ev
}

// maskAny masks a value that is not encoded yet. A value that cannot be encoded is left to the encoder.
func (a *Attempt) maskAny(of string, v any) any {
	switch v := v.(type) {
	case nil, bool:
		return v
	case string:
		return a.hide(v)
	case []byte:
		if texts := a.hidden(); len(texts) > 0 {
			return []byte(redact.Hide(string(v), texts))
		}
		return v
	case error:
		if said := v.Error(); a.hide(said) != said {
			return a.hide(said)
		}
		return v
	}
	paths, err := redact.Paths(reflect.TypeOf(v))
	rules, texts := a.redaction.rules.With(redact.In(of, paths)), a.hidden()
	if err == nil && rules == nil && len(texts) == 0 {
		return v
	}
	raw, jsonErr := json.Marshal(v)
	if jsonErr != nil {
		return v
	}
	masked := redact.Hide(string(rules.JSON(of, raw)), texts)
	if err != nil { // a wrong tag: it may be meant for a secret
		masked = `"` + redact.Mask + `"`
	}
	if masked == string(raw) {
		return v
	}
	var plain any
	if json.Unmarshal([]byte(masked), &plain) != nil { // a number was masked
		return masked
	}
	return plain
}

// maskAttr masks an attribute of a log line.
func (a *Attempt) maskAttr(attr slog.Attr) slog.Attr {
	v := attr.Value.Resolve()
	switch {
	case a.redaction.rules.Matches(redact.Log, attr.Key):
		return slog.String(attr.Key, redact.Mask)
	case v.Kind() == slog.KindGroup:
		var list []any
		for _, of := range v.Group() {
			list = append(list, a.maskAttr(of))
		}
		return slog.Group(attr.Key, list...)
	case v.Kind() == slog.KindString:
		return slog.String(attr.Key, a.hide(v.String()))
	case v.Kind() == slog.KindInt64, v.Kind() == slog.KindUint64:
		if said := v.String(); a.hide(said) != said {
			return slog.String(attr.Key, redact.Mask)
		}
	case v.Kind() == slog.KindAny:
		return slog.Any(attr.Key, a.maskAny(redact.Log, v.Any()))
	}
	return attr
}

// maskRecord masks a log line.
func (a *Attempt) maskRecord(r *slog.Record) slog.Record {
	plain := a.redaction.rules == nil && len(a.hidden()) == 0
	r.Attrs(func(attr slog.Attr) bool { // a value may have a type with tags
		k := attr.Value.Kind()
		plain = plain && k != slog.KindAny && k != slog.KindGroup && k != slog.KindLogValuer
		return plain
	})
	if plain {
		return *r
	}
	masked := slog.NewRecord(r.Time, r.Level, a.hide(r.Message), r.PC)
	r.Attrs(func(attr slog.Attr) bool {
		masked.AddAttrs(a.maskAttr(attr))
		return true
	})
	return masked
}
