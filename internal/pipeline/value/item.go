package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/pipeline/template"
)

// Item is the root of the value of a foreach: {{.item}}.
const Item = "item"

// List returns the output of a task as a list of JSON values: the entries of an
// array if the output is a JSON array, else the lines as strings. It omits blank
// entries. Its error is an *Error.
func (o *Output) List() ([]json.RawMessage, error) {
	p := template.Path{Root, o.Task, asJSON}
	switch o.Kind {
	case Command:
		p[2] = stdout
	case Request:
		p[2] = body
	}
	v, err := o.get(p)
	if err != nil {
		return nil, err
	}
	raw := json.RawMessage(strings.TrimSpace(v.text))
	if v.json != nil {
		raw = v.json
	}
	if len(raw) > 0 && raw[0] == '[' && json.Valid(raw) {
		return entries(raw), nil
	}
	if v.json != nil {
		return nil, &Error{p, fmt.Sprintf("it is not an array: it is %s", excerpt(string(raw)))}
	}
	var list []json.RawMessage
	for line := range strings.SplitSeq(v.text, "\n") {
		if line = strings.TrimSuffix(line, "\r"); strings.TrimSpace(line) != "" {
			list = append(list, quote(line))
		}
	}
	return list, nil
}

// entries returns the entries of a valid JSON array, without blank ones.
func entries(array json.RawMessage) []json.RawMessage {
	var all, list []json.RawMessage
	_ = json.Unmarshal(array, &all) // it is valid
	for _, raw := range all {
		if strings.TrimSpace(ItemText(raw)) != "" {
			list = append(list, raw)
		}
	}
	return list
}

// ItemText returns an entry of a list as text: a string without quotes, any other
// value as compact JSON.
func ItemText(raw json.RawMessage) string { return itemOf(raw).text }

func itemOf(raw json.RawMessage) found {
	var text string
	if bytes.HasPrefix(raw, []byte(`"`)) && json.Unmarshal(raw, &text) == nil {
		return found{text: text}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return found{text: string(raw)} // callers pass valid JSON
	}
	return found{compact.String(), compact.Bytes()}
}

// FillWithItem is Fill with an entry of a list in place of {{.item}}. It calls
// find for each path: see [Remember].
func (t Texts) FillWithItem(item json.RawMessage, find Find) (Texts, error) {
	v := itemOf(item)
	return t.fill(filler{find: find, item: &v})
}

// CheckForeach is Check for texts that may contain {{.item}}.
func (t Texts) CheckForeach() []error {
	return t.check(func(p template.Path) *Problem {
		if p[0] == Item {
			return checkItem(p)
		}
		if File(p) != "" {
			return &Problem{fmt.Sprintf("%s is the path of a file, which a node of a foreach_from cannot be given", p), "let a task that needs this one unpack the file, or read it, and put out what the nodes need"}
		}
		return CheckPath(p)
	})
}

func checkItem(p template.Path) *Problem {
	if len(p) == 1 {
		return nil
	}
	return &Problem{p.String() + " names a part of a value that has none", "write {{.item}}"}
}

// ofItem returns the value of {{.item}}.
func (f filler) ofItem(p template.Path) (v found, known bool, err error) {
	if wrong := checkItem(p); wrong != nil {
		return found{}, false, &Error{p, wrong.Error()}
	}
	if f.item == nil {
		return found{}, false, nil
	}
	return *f.item, true, nil
}
