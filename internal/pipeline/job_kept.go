package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline/template"
	"github.com/goweaver/weaver/internal/pipeline/value"
)

// NeedsValues returns the kept tasks whose values other tasks reference, in the
// order of the file. The caller must pass these values to [Pipeline.Fill].
func (p *Pipeline) NeedsValues(kept []string) []string {
	isKept := make(map[string]bool, len(kept))
	for _, name := range kept {
		isKept[name] = true
	}
	needed := make(map[string]bool)
	for i := range p.Tasks {
		if t := &p.Tasks[i]; !isKept[t.Name] {
			for _, path := range t.values() {
				needed[path[1]] = isKept[path[1]]
			}
		}
	}
	var names []string
	for i := range p.Tasks {
		if name := p.Tasks[i].Name; needed[name] {
			names = append(names, name)
		}
	}
	return names
}

// values returns the references of a task to values of needs: in its texts and in
// its list.
func (t *Task) values() []template.Path {
	all := t.inTexts()
	if t.From != "" {
		all = append(all, template.Path{value.Root, t.From})
	}
	return all
}

func (t *Task) inTexts() []template.Path {
	if t.HTTP != nil && t.HTTP.Templates {
		return textsOf(t.HTTP).Paths()
	}
	if t.Templates {
		return value.Texts{Args: t.Argv, Env: t.Env}.Paths()
	}
	return nil
}

func textsOf(in *builtin.RequestInput) value.Texts {
	return value.Texts{URL: in.URL, Headers: in.Headers, JSON: in.JSON, Body: in.Body}
}

// Fill returns the tasks that reference kept tasks, with those values filled in,
// for JobOptions.Filled. Its error names the task.
func (p *Pipeline) Fill(kept map[string]*value.Output) (map[string]*Task, error) {
	find := func(name string) (*value.Output, error) { return kept[name], nil }
	filled := make(map[string]*Task)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		ofKept := func(path template.Path) bool { return kept[path[1]] != nil }
		if kept[t.Name] != nil || !slices.ContainsFunc(t.values(), ofKept) {
			continue
		}
		made, err := t.fill(find)
		if err != nil {
			return nil, fmt.Errorf("task %q: %w", t.Name, err)
		}
		filled[t.Name] = made
	}
	return filled, nil
}

// fill returns the task with the values that find knows. If no references are
// left, its texts are literals except for {{.item}}.
func (t *Task) fill(find value.Find) (*Task, error) {
	made := *t
	if t.From != "" {
		o, err := find(t.From)
		if o != nil && err == nil {
			made.Values, err = o.List()
			made.Values = append([]json.RawMessage{}, made.Values...) // not nil, even if empty: the values are known
		}
		if err != nil || !t.Templates {
			return &made, err
		}
	}
	texts := value.Texts{Args: t.Argv, Env: t.Env}
	if t.HTTP != nil {
		texts = textsOf(t.HTTP)
	}
	some, err := texts.FillSome(find)
	if err != nil {
		return nil, err
	}
	left := len(some.Paths()) > 0 || t.From != ""
	if !left {
		if some, err = texts.Fill(find); err != nil {
			return nil, err
		}
	}
	made.Templates = left
	if t.HTTP == nil {
		made.Argv, made.Env = some.Args, some.Env
		return &made, nil
	}
	in := *t.HTTP
	in.URL, in.Headers, in.JSON, in.Body, in.Templates = some.URL, some.Headers, some.JSON, some.Body, left
	made.HTTP = &in
	if t.From != "" {
		return &made, builtin.ForeachInput{Request: &in}.Validate()
	}
	return &made, in.Validate()
}
