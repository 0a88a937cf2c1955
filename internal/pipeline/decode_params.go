package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Param is a value that each run of the pipeline may choose.
type Param struct {
	Name        string
	Type        string   // string, int, number or bool
	Choices     []string // nil: any
	Description string
	Default     string
	Required    bool   // it has no default
	Known       bool   // false for a missing value, with Given.Partial
	Value       string // as text
}

// ParamsJSON returns the values of all params as a JSON object, or "" without
// params.
func (p *Pipeline) ParamsJSON() string {
	if len(p.Params) == 0 {
		return ""
	}
	values := make(map[string]json.RawMessage, len(p.Params))
	for _, v := range p.Params {
		raw := appendText(nil, v.Value)
		if v.Type != typeString && v.Known {
			raw = []byte(v.Value)
		}
		values[v.Name] = raw
	}
	return strings.TrimSuffix(string(canonical(values)), "\n")
}

// SameParams reports whether the pipeline has the values that ParamsJSON wrote for
// an earlier job. A param missing in the job counts as its default; a param
// missing in the pipeline is ignored.
func (p *Pipeline) SameParams(stored string) bool {
	earlier := ParamTexts(stored)
	return !slices.ContainsFunc(p.Params, func(v Param) bool {
		before, had := earlier[v.Name]
		if !had {
			return v.Required || v.Value != v.Default
		}
		return v.Value != before
	})
}

// ParamTexts decodes the output of ParamsJSON: the values as text, by name.
func ParamTexts(stored string) map[string]string {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stored), &raw); err != nil {
		return nil
	}
	texts := make(map[string]string, len(raw))
	for name, v := range raw {
		var text string
		if err := json.Unmarshal(v, &text); err != nil {
			text = string(v)
		}
		texts[name] = text
	}
	return texts
}

// Param types.
const (
	typeString = "string"
	typeInt    = "int"
	typeNumber = "number"
	typeBool   = "bool"
)

var paramTypes = []string{typeString, typeInt, typeNumber, typeBool}

// otherTypes maps the type names of other tools to ours.
var otherTypes = map[string]string{
	"str": typeString, "text": typeString, "date": typeString, "integer": typeInt, "float": typeNumber, "double": typeNumber, "boolean": typeBool,
}

// maxParam is the maximum size of a value, in bytes.
const maxParam = 4096

// param is a Param and its place in the file.
type param struct {
	Param
	at    spot
	value *textValue // nil: unknown
}

// lacksParam reports whether a param has no value, which [Given].Partial allows.
func (d *decoder) lacksParam() bool {
	for _, p := range d.params {
		if p.value == nil {
			return true
		}
	}
	return false
}

// readParams reads the declarations and the given values.
func (d *decoder) readParams(root *node) {
	d.params = make(map[string]*param)
	if e, ok := root.get("params"); ok {
		d.declare(field{e, "the pipeline"})
	}
	for _, name := range slices.Sorted(maps.Keys(d.given.Params)) {
		d.give(root, name, d.given.Params[name])
	}
	wrong := d.r.failed()
	for _, name := range d.paramNames {
		p := d.params[name]
		if !wrong && p.value == nil && p.Required && !d.given.Partial {
			want := "VALUE"
			if len(p.Choices) > 0 {
				want = p.Choices[0]
			}
			d.r.add(p.at, fmt.Sprintf("the param %s is not given, and it has no default", quote(name)), fmt.Sprintf("write -p %s=%s after the command, or give it a default", cut(name), cut(want)))
		}
		d.p.Params = append(d.p.Params, p.Param)
	}
}

func (d *decoder) declare(f field) {
	if !d.mapping(f, "{day: 2026-11-20, keep: {type: int, default: 3}}") {
		return
	}
	d.onlyOnce(f.value, f.label())
	for _, e := range f.value.entries {
		if !d.valueName(e, f.label()) {
			continue
		}
		p := &param{Param: Param{Name: e.name, Type: typeString}, at: e.at}
		d.params[e.name] = p
		d.paramNames = append(d.paramNames, e.name)
		d.declareOne(field{e, f.label()}, p)
	}
}

// valueName checks a name for {{.params.NAME}} or {{.matrix.NAME}}.
func (d *decoder) valueName(e entry, of string) bool {
	odd := func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	if e.name == "" || len(e.name) > MaxName || strings.ContainsFunc(e.name, odd) {
		return d.r.add(e.at, fmt.Sprintf("%s in %s cannot name a value", quote(e.name), of), "write a name of letters, digits, _ and -, such as day")
	}
	return true
}

func (d *decoder) declareOne(f field, p *param) {
	const example = "{type: int, default: 3}"
	switch f.value.kind {
	case scalar:
		p.Type = typeOf(f.value)
		d.setDefault(f, p)
	case mapping:
		d.declareMapping(f, p)
	case nothing:
		d.r.add(f.spot(), f.label()+" has no value", `write a default, "" for an empty text, or {type: string} for a param that must be given`)
	default:
		d.wrong(f, "a default, or a mapping", example)
	}
}

func (d *decoder) declareMapping(f field, p *param) {
	of := "the param " + quote(p.Name)
	var choices, standard *field
	typed, required := false, false
	d.keys(f.value, of, paramLevel, func(f field) {
		switch f.name {
		case "type":
			typed = true
			p.Type = d.paramType(f)
		case "default":
			standard = &f
		case "choices":
			choices = &f
		case "description":
			p.Description, _ = d.text(f, "what it is for")
		case "required":
			required = f.value.kind == nothing || d.yes(f)
		}
	})
	if !typed && standard != nil {
		p.Type = typeOf(standard.value)
	}
	if choices != nil {
		d.choices(*choices, p)
	}
	switch {
	case standard == nil:
		p.Required = true
	case required:
		d.r.add(standard.at, of+" is required and has a default", "keep one of them")
	default:
		d.setDefault(*standard, p)
	}
	if e, ok := f.value.get("required"); ok && e.value.kind != nothing && !required && standard == nil {
		d.r.add(e.at, of+" is not required and has no default", `give it one, as in default: ""`)
	}
}

func (d *decoder) paramType(f field) string {
	if f.value.kind != scalar {
		d.wrong(f, "one of "+strings.Join(paramTypes, ", "), typeInt)
		return typeString
	}
	given := f.value.text
	if slices.Contains(paramTypes, given) {
		return given
	}
	hint := "write one of " + strings.Join(paramTypes, ", ")
	lower := strings.ToLower(given)
	if meant := otherTypes[lower]; meant != "" {
		hint = "write type: " + meant
	} else if best := nearest(lower, paramTypes); best != "" {
		hint = fmt.Sprintf("did you mean %q?", best)
	}
	d.r.add(f.spot(), fmt.Sprintf("%s is %s, which is not a param type", f.label(), quote(given)), hint)
	return typeString
}

func (d *decoder) choices(f field, p *param) {
	for _, item := range d.nameList(f, "[small, large]") {
		if text, ok := d.paramText(item, p); ok {
			p.Choices = append(p.Choices, text)
		}
	}
	if f.value.kind == list && len(f.value.items) == 0 {
		d.r.add(f.spot(), f.label()+" is empty", f.example("[small, large]"))
	}
}

// setDefault sets the default as the value until another value is given.
func (d *decoder) setDefault(f field, p *param) {
	text, ok := d.paramText(f, p)
	if !ok {
		return
	}
	if len(p.Choices) > 0 && !slices.Contains(p.Choices, text) {
		d.r.add(f.spot(), fmt.Sprintf("%s is %s, which is none of its choices", f.label(), quote(text)), "the choices are "+strings.Join(p.Choices, ", "))
		return
	}
	p.Default = text
	p.set(text)
}

func (p *param) set(text string) {
	p.Value, p.Known = text, true
	p.value = &textValue{text: text, bare: p.Type != typeString}
}

// paramText reads a default or a choice.
func (d *decoder) paramText(f field, p *param) (string, bool) {
	if f.value.kind != scalar {
		d.wrong(f, "a text, a number, true or false", "3")
		return "", false
	}
	text, problem, hint := paramValue(p.Type, f.value.text)
	if problem != "" {
		return "", d.r.add(f.spot(), fmt.Sprintf("%s %s", f.label(), problem), "write for example "+f.name+": "+hint)
	}
	return text, d.checkNUL(f.spot(), f.label(), text)
}

// give sets a value from the command line.
func (d *decoder) give(root *node, name, text string) {
	p := d.params[name]
	if p == nil {
		at := d.r.src.whole()
		if e, ok := root.get("params"); ok {
			at = e.at
		}
		d.r.addSuggesting(at, fmt.Sprintf("-p %s: the pipeline has no param %s", cut(name+"="+text), quote(name)), func() string { return d.adviseParam(name) })
		return
	}
	said := "-p " + cut(name+"="+text)
	checked, problem, example := paramValue(p.Type, text)
	switch {
	case problem != "":
		d.r.add(p.at, fmt.Sprintf("%s: the param %s", said, problem), "write for example -p "+name+"="+example)
	case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		d.r.add(p.at, said+": the value is not text", "write it in UTF-8")
	case len(p.Choices) > 0 && !slices.Contains(p.Choices, checked):
		d.r.addSuggesting(p.at, fmt.Sprintf("%s: %s is none of the choices", said, quote(text)), func() string {
			if best := nearest(text, p.Choices); best != "" {
				return fmt.Sprintf("did you mean -p %s=%s?", name, best)
			}
			return "the choices are " + strings.Join(p.Choices, ", ")
		})
	default:
		p.set(checked)
	}
}

// paramValue checks a value against a type. The problem continues a sentence that
// begins with the param's name; example is a valid value.
func paramValue(kind, text string) (checked, problem, example string) {
	if len(text) > maxParam {
		return "", fmt.Sprintf("is %d bytes long, and at most %d are allowed", len(text), maxParam), "PATH, of a file with the value"
	}
	what := plainKind(text)
	switch kind {
	case typeInt:
		if _, ok := wholeNumber(text); !ok {
			return "", fmt.Sprintf("is of type int, and %s is not a whole number", quote(text)), "3"
		}
	case typeNumber:
		if what != plainNumber {
			return "", fmt.Sprintf("is of type number, and %s is none", quote(text)), "2.5"
		}
	case typeBool:
		switch what {
		case plainTrue:
			return "true", "", ""
		case plainFalse:
			return "false", "", ""
		}
		return "", fmt.Sprintf("is of type bool, and %s is neither true nor false", quote(text)), "true"
	}
	return text, "", ""
}

// typeOf returns the type of a param declared by its default alone.
func typeOf(n *node) string {
	if !n.plain {
		return typeString
	}
	switch plainKind(n.text) {
	case plainTrue, plainFalse:
		return typeBool
	case plainNumber:
		if _, ok := wholeNumber(n.text); ok {
			return typeInt
		}
		return typeNumber
	}
	return typeString
}

// adviseParam suggests a param for an unknown name.
func (d *decoder) adviseParam(name string) string {
	if len(d.paramNames) == 0 {
		return fmt.Sprintf("declare it at the top of the file: params: {%s: a default}", cut(name))
	}
	if best := nearest(name, d.paramNames); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "the params are " + strings.Join(d.paramNames, ", ")
}
