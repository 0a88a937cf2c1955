package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/pipeline/template"
	"github.com/goweaver/weaver/internal/pipeline/value"
)

// textValue is the value of a path such as .params.day.
type textValue struct {
	text string
	bare bool // a number, true or false: keeps its type where it is a whole JSON value
}

// scope holds the values that texts can name besides params.
type scope struct {
	task   string               // the file's task that has the texts; "": the pipeline
	hook   bool                 // the texts belong to a task of on
	node   bool                 // the texts belong to a node of a task that was read before
	each   string               // the key that expands the task, or ""
	item   *textValue           // of foreach and foreach_glob; nil: unknown
	matrix map[string]textValue // nil: unknown
	names  []string             // of the matrix, in the order of the file
	open   bool                 // the command or request names a value that is still unknown: its texts stay templates
}

// filling selects the values that a text may name.
type filling int

const (
	literally filling = iota // no values
	atRead                   // values known before the job is stored
	atRun                    // also values known when the task runs
)

// maxFilled bounds, in bytes, the texts of all tasks after filling in values.
const maxFilled = maxShared

// final fills the values into a scalar and returns any other node unchanged. In an
// open scope the text of a command or request becomes a template, which the worker
// completes; otherwise it becomes a literal.
func (d *decoder) final(n *node, of string, how filling) *node {
	stays := how == atRun && d.scope.open
	if n.kind != scalar || !template.Has(n.text) {
		return n
	}
	filled := *n
	parsed, err := template.Parse(n.text)
	if err != nil {
		d.wrongTemplate(n, of, err)
		return n
	}
	values, ok := d.valuesOf(n, of, how, parsed)
	if !ok || d.filled > maxFilled {
		return n
	}
	filled.text, filled.plain = fillIn(parsed, values, stays), false
	if len(parsed) == 1 && parsed[0].Path != nil {
		if v := values[parsed[0].Path.String()]; v != nil {
			filled.plain = v.bare
		}
	}
	if d.filled += len(filled.text); d.filled > maxFilled {
		d.r.add(n.at, fmt.Sprintf("the tasks have more than %d MiB with their values filled in", maxFilled>>20), "keep long texts in files of their own")
	}
	return &filled
}

// finalField returns the field with the final of its value.
func (d *decoder) finalField(f field, how filling) field {
	f.value = d.final(f.value, f.label(), how)
	return f
}

// fillIn fills in the known values. Unknown values stay as written, in texts that
// stay templates and, with [Given].Partial, in all others.
func fillIn(parsed template.Template, values map[string]*textValue, stays bool) string {
	if stays {
		return parsed.FillSome(func(p template.Path) (string, bool) {
			if v := values[p.String()]; v != nil {
				return v.text, true
			}
			return "", false
		})
	}
	text, _ := parsed.Fill(func(p template.Path) (string, error) { // the function returns no error
		if v := values[p.String()]; v != nil {
			return v.text, nil
		}
		return p.String(), nil
	})
	return text
}

// valuesOf looks up the values that a text names; an unknown value is nil. It
// returns ok false after it reports a mistake.
func (d *decoder) valuesOf(n *node, of string, how filling, parsed template.Template) (values map[string]*textValue, ok bool) {
	values, ok = make(map[string]*textValue), true
	for _, part := range parsed {
		if part.Path == nil {
			continue
		}
		v, problem, hint := d.find(part.Path, how)
		if problem != "" {
			ok = d.r.addSuggesting(d.placeIn(n, written(n.text[part.At:])), fmt.Sprintf("%s in %s %s", quote(written(n.text[part.At:])), of, problem), hint)
		}
		values[part.Path.String()] = v
		if v == nil && problem == "" && part.Path[0] == value.Root {
			d.use(n, of, part)
		}
	}
	return values, ok
}

func (d *decoder) wrongTemplate(n *node, of string, err error) {
	at, message, hint := n.at, err.Error(), ""
	var syntax *template.SyntaxError
	if errors.As(err, &syntax) {
		at, message, hint = d.placeIn(n, written(n.text[syntax.At:])), syntax.Problem, syntax.Hint
	}
	d.r.add(at, fmt.Sprintf("%s: %s", of, message), hint)
}

// find returns the value of a path, or nil while it is unknown. The problem
// continues the sentence "… in env of task "a" ".
func (d *decoder) find(path template.Path, how filling) (v *textValue, problem string, hint func() string) {
	wrong := func(problem, hint string) (*textValue, string, func() string) {
		return nil, problem, func() string { return hint }
	}
	names := d.scope.names
	switch root := path[0]; {
	case root == "params" && len(path) == 2:
		if p := d.params[path[1]]; p != nil {
			return p.value, "", nil
		}
		if d.r.file != "" {
			return wrong("names a param, which an included file has none of", "write the value, or move the task to the file that is run")
		}
		return nil, "names a param that the pipeline does not have", func() string {
			if best := nearest(path[1], d.paramNames); best != "" {
				return fmt.Sprintf("did you mean %s?", template.Path{"params", best})
			}
			return d.adviseParam(path[1])
		}
	case root == "params" && len(path) == 1:
		return wrong("names no param", "write for example {{.params.day}}")
	case root == "params":
	case root == "item" && (d.scope.each == "foreach" || d.scope.each == "foreach_glob"):
		if len(path) == 1 {
			return d.scope.item, "", nil
		}
	case root == "item" && d.scope.each == "foreach_from" && how == atRun:
		if len(path) == 1 {
			return nil, "", nil // known when the task runs
		}
	case root == "item" && d.scope.each == "foreach_from":
		return wrong("is known when the task runs, and this is read before", "values of a foreach_from can stand in the arguments of a list run, in env of the task, and in url, headers, json and body of http")
	case root == "item" && d.scope.each == "matrix":
		return wrong("is of a task with foreach, and this one has a matrix", fmt.Sprintf("write {{.matrix.%s}}", strings.Join(names, "}} or {{.matrix.")))
	case root == "item":
		return wrong("is the value of a foreach, and there is none here", "give the task foreach: [a, b] or foreach_glob: \"*.csv\"")
	case root == "matrix" && d.scope.each == "matrix" && len(path) == 2:
		if !slices.Contains(names, path[1]) {
			return nil, "names what the matrix does not have", func() string { return adviseOf(path[1], names, ".matrix.") }
		}
		if v, ok := d.scope.matrix[path[1]]; ok {
			return &v, "", nil
		}
		return nil, "", nil
	case root == "matrix" && d.scope.each == "matrix" && len(path) == 1:
		return wrong("names no part of the matrix", "write for example {{.matrix.os}}")
	case root == "matrix" && d.scope.each != "matrix":
		return wrong("is the value of a matrix, and there is none here", "give the task matrix: {os: [linux, mac]}")
	case root == "matrix":
	case root == "tasks" && d.scope.hook:
		return wrong("may not be there when this runs, whatever became of the tasks", "give a task with needs the condition if: failed or if: done, and the value")
	case root == "tasks" && how == atRun && d.scope.task != "":
		return nil, "", nil // known when the task runs
	case root == "tasks":
		return wrong("is known when the task runs, and this is read before", "values of needs can stand in the arguments of a list run, in env of a task, and in url, headers, json and body of http; the code of a task type reads its needs itself (Type.Output)")
	default:
		return nil, "names no value", func() string { return d.adviseRoot(path) }
	}
	return wrong("names a part of a value that has none", "write "+path[:min(len(path)-1, 2)].String())
}

// adviseRoot suggests a root for a path, and a way to write the text as a literal.
func (d *decoder) adviseRoot(path template.Path) string {
	if best := nearest(strings.ToLower(path[0]), []string{"item", "matrix", "params", "tasks"}); best != "" {
		return "did you mean " + append(template.Path{best}, path[1:]...).String() + "?"
	}
	if d.params[path[0]] != nil {
		return "did you mean " + append(template.Path{"params"}, path...).String() + "?"
	}
	return fmt.Sprintf(`the values are {{.params.NAME}}, {{.item}}, {{.matrix.NAME}} and {{.tasks.NAME.stdout}}; for the text itself write {{"{{"}}%s`,
		strings.TrimPrefix(path.String(), "{{"))
}

// adviseOf is adviseName for names other than tasks.
func adviseOf(name string, known []string, before string) string {
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf("did you mean %s%s?", before, best)
	}
	return "there is " + before + strings.Join(known, ", "+before)
}

// opens reports whether the command or request of a task names a value that is
// still unknown.
func (d *decoder) opens(task *node) bool {
	for _, key := range []string{"run", "env", "http"} {
		e, ok := task.get(key)
		if ok && (key != "run" || e.value.kind == list) && d.opensTree(e.value) {
			return true
		}
	}
	return false
}

func (d *decoder) opensTree(n *node) bool {
	if n.kind == scalar && template.Has(n.text) {
		parsed, err := template.Parse(n.text)
		return err == nil && slices.ContainsFunc(parsed.Paths(), func(p template.Path) bool {
			v, problem, _ := d.find(p, atRun)
			return v == nil && problem == ""
		})
	}
	return slices.ContainsFunc(n.items, d.opensTree) ||
		slices.ContainsFunc(n.entries, func(e entry) bool { return d.opensTree(e.value) })
}
