package capsule

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/goweaver/weaver/internal/jsonnumber"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// secrets returns the masked texts of all tasks, the longest first. Rules that a type got after its tasks were
// enqueued count, too.
func secrets(c *Content) (texts []string) {
	rules := map[string][]string{}
	for i := range c.Types {
		rules[c.Types[i].Name] = c.Types[i].Redact
	}
	for i := range c.Tasks {
		t := &c.Tasks[i].Task
		for _, p := range rules[t.Type] {
			if !slices.Contains(t.Redact, p) {
				t.Redact = append(slices.Clip(t.Redact), p)
			}
		}
		h := &c.Tasks[i].History
		texts = append(texts, redact.Secrets(h)...)
		r := redact.New(t.Redact)
		for j := range h.Checkpoints {
			texts = append(texts, r.Texts(redact.Checkpoint, h.Checkpoints[j].Value)...)
		}
	}
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(texts)
}

// holds reports whether bytes contain one of the texts, as it is or as in JSON.
func holds(data []byte, texts []string) bool {
	for _, t := range texts {
		in, _ := json.Marshal(t) // a string always encodes
		if redact.Hide(t, []string{t}) != t && (bytes.Contains(data, []byte(t)) || bytes.Contains(data, in[1:len(in)-1])) {
			return true
		}
	}
	return false
}

// mask masks the content as for readers, and the masked texts of every task wherever they occur in another.
func (c *Content) mask(texts []string) {
	m := masker(texts)
	for i := range c.Tasks {
		t := &c.Tasks[i]
		redact.History(&t.History)
		if len(texts) > 0 {
			m.task(t)
		}
	}
	if len(texts) == 0 {
		return
	}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		m.texts(&j.Name, &j.IdempotencyKey, &j.CancelBy, &j.CancelReason)
		j.Meta = m.strings(j.Meta)
	}
	for i := range c.LeftOut {
		m.texts(&c.LeftOut[i].What, &c.LeftOut[i].Why)
	}
}

// masker hides texts.
type masker []string

func (m masker) task(t *Task) {
	of := &t.Task
	m.values(&of.Input, &of.Output, &of.UnblockInput)
	of.Error = m.failure(of.Error)
	m.texts(&of.IdempotencyKey, &of.ConcurrencyKey, &of.CancelBy, &of.CancelReason, &of.UnblockFor, &of.Node)
	of.Labels, of.Metadata = m.strings(of.Labels), m.strings(of.Metadata)
	if of.Progress != nil {
		p := *of.Progress
		m.texts(&p.Message)
		of.Progress = &p
	}
	if of.Undo != nil {
		p := *of.Undo
		p.Error = m.failure(p.Error)
		of.Undo = &p
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		a.Error, a.Notes = m.failure(a.Error), m.strings(a.Notes)
		m.texts(&a.RouteReason)
		a.StepsRun, a.StepsUnreached = m.list(a.StepsRun), m.list(a.StepsUnreached)
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		m.texts(&s.Name, &s.Signal)
		m.values(&s.Value)
		s.Error = m.failure(s.Error)
	}
	for i := range t.Signals {
		g := &t.Signals[i]
		m.texts(&g.Name, &g.Key, &g.Actor, &g.Step)
		m.values(&g.Payload)
	}
	for i := range t.Checkpoints {
		m.texts(&t.Checkpoints[i].Name)
		m.values(&t.Checkpoints[i].Value)
	}
	for i := range t.Artifacts {
		a := &t.Artifacts[i]
		m.texts(&a.Name, &a.Step)
		m.values(&a.LinkValue)
	}
	for i := range t.Decisions {
		why := &t.Decisions[i].Reason
		m.texts(&why.Text, &why.Change, &why.Fallback)
		why.Evidence = m.evidence(why.Evidence)
	}
	for i := range t.Needs {
		n := &t.Needs[i]
		m.texts(&n.Step)
		n.EndedError = m.failure(n.EndedError)
	}
	for i := range t.Audit {
		m.texts(&t.Audit[i].Actor, &t.Audit[i].Reason)
	}
	for i := range t.Events {
		m.values(&t.Events[i].Body)
	}
}

func (m masker) text(s string) string { return redact.Hide(s, m) }

func (m masker) texts(of ...*string) {
	for _, s := range of {
		*s = m.text(*s)
	}
}

func (m masker) list(of []string) []string {
	got := slices.Clone(of)
	for i := range got {
		m.texts(&got[i])
	}
	return got
}

func (m masker) strings(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	got := make(map[string]string, len(of))
	for k, v := range of {
		got[m.text(k)] = m.text(v)
	}
	return got
}

func (m masker) failure(e *task.Error) *task.Error {
	if e == nil {
		return nil
	}
	got := *e
	m.texts(&got.Message, &got.Code, &got.Step, &got.Stack, &got.Ask)
	return &got
}

// values masks the strings in JSON values, and the numbers that are one of the texts.
func (m masker) values(of ...*json.RawMessage) {
	for _, raw := range of {
		var v any
		if len(*raw) == 0 {
			continue
		}
		if err := jsonnumber.Unmarshal(*raw, &v); err != nil { // not JSON: a plain text
			*raw = json.RawMessage(m.text(string(*raw)))
			continue
		}
		changed := false
		v = m.value(v, &changed)
		if !changed { // the bytes stay as they are
			continue
		}
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil { // it was decoded just now
			out.Reset()
			out.WriteString(`"` + redact.Mask + `"`)
		}
		*raw = bytes.TrimSpace(out.Bytes())
	}
}

func (m masker) value(v any, changed *bool) any {
	switch v := v.(type) {
	case string:
		got := m.text(v)
		*changed = *changed || got != v
		return got
	case json.Number:
		if m.text(v.String()) == redact.Mask {
			*changed = true
			return redact.Mask
		}
	case []any:
		for i := range v {
			v[i] = m.value(v[i], changed)
		}
	case map[string]any:
		got := make(map[string]any, len(v))
		for k, of := range v {
			name := m.text(k)
			*changed = *changed || name != k
			got[name] = m.value(of, changed)
		}
		return got
	}
	return v
}

func (m masker) evidence(e map[string]any) map[string]any {
	if len(e) == 0 {
		return e
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	masked := json.RawMessage(raw)
	m.values(&masked)
	got := map[string]any{}
	if jsonnumber.Unmarshal(masked, &got) != nil {
		return nil
	}
	jsonnumber.PlainMap(got)
	return got
}

// dropPayloads removes what users gave and got: inputs, outputs, values, signals, links, events and logs.
func (c *Content) dropPayloads() {
	for i := range c.Tasks {
		t := &c.Tasks[i]
		t.Task.Input, t.Task.Output, t.Task.UnblockInput, t.Task.Progress = leftOut, nil, nil, nil
		t.Task.Metadata = nil
		for j := range t.Steps {
			if len(t.Steps[j].Value) > 0 {
				t.Steps[j].Value = leftOut
			}
		}
		for j := range t.Signals {
			t.Signals[j].Payload = leftOut
		}
		for j := range t.Checkpoints {
			t.Checkpoints[j].Value = leftOut
		}
		t.Artifacts = slices.DeleteFunc(t.Artifacts, func(a task.Artifact) bool { return len(a.LinkValue) > 0 })
		t.Events = []store.EventRow{}
	}
	c.LeftOut = append(c.LeftOut, LeftOut{What: "inputs, outputs, values of steps, signals, checkpoints, progress, metadata, links, artifacts' bytes, events and logs", Why: "--no-payloads"})
}
