package pipeline

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goweaver/weaver/internal/template"
	"github.com/goweaver/weaver/internal/value"
	"github.com/goweaver/weaver/task"
)

// Values of needs, {{.tasks.fetch.stdout}}, are filled in by the worker. The
// decoder leaves them in the texts, after it has checked that the worker will know
// them, and sets Templates of the task's input.

// use is a value of a need in a text of a task.
type use struct {
	at   spot
	of   string // the field
	path template.Path
}

// named is the value as it is written in a file.
func (u *use) named() string { return u.path.String() + " in " + u.of }

// usesOf are those of one task.
type usesOf struct {
	task string
	uses []use
}

// findUses looks for values in the texts of a task, before they are decoded. It
// reports those that stand where none can.
func (d *decoder) findUses(e entry) []use {
	var uses []use
	of := "task " + quote(e.name)
	for _, entry := range e.value.entries {
		f := field{entry, of}
		switch f.name {
		case "run":
			if f.value.kind == scalar {
				d.shellTemplates(f)
				continue
			}
			d.codeArguments(f)
			uses = append(uses, d.usesIn(f.value, f.label())...)
		case "env":
			uses = append(uses, d.usesIn(f.value, f.label())...)
		case "http":
			for _, part := range f.value.entries {
				switch p := (field{part, "http of " + of}); p.name {
				case "url", "headers", "json", "body":
					uses = append(uses, d.usesIn(p.value, p.label())...)
				case "headers_env":
					d.noUses(p)
				}
			}
		default:
			d.noUses(f)
		}
	}
	return uses
}

// usesIn returns the values in the texts below a node.
func (d *decoder) usesIn(n *node, of string) []use {
	var uses []use
	for _, item := range n.items {
		uses = append(uses, d.usesIn(item, of)...)
	}
	for _, e := range n.entries {
		uses = append(uses, d.usesIn(e.value, of)...)
	}
	if n.kind != scalar || !ours.MatchString(n.text) {
		return uses
	}
	parsed, err := template.Parse(n.text)
	if wrong := (*template.SyntaxError)(nil); errors.As(err, &wrong) {
		d.r.add(n.at, fmt.Sprintf("%s: %s", of, wrong.Problem), wrong.Hint)
		return uses
	}
	for _, part := range parsed {
		if part.Path == nil {
			continue
		}
		u := use{d.placeAt(n, part.At), of, part.Path}
		if wrong := value.CheckPath(part.Path); wrong != nil {
			d.r.add(u.at, of+": "+wrong.Problem, wrong.Hint)
			continue
		}
		uses = append(uses, u)
	}
	return uses
}

// placeAt is where a value stands that begins at a byte of a text.
func (d *decoder) placeAt(n *node, at int) spot {
	name := written(n.text[at:])
	for _, quotes := range []string{"", "'", `"`} {
		// Without an escape before it: then the text need not be searched.
		if from := n.at.from + len(quotes) + at; from < len(d.r.src.text) && strings.HasPrefix(d.r.src.text[from:], name) {
			return d.r.src.spot(from, from+len(name))
		}
	}
	return d.placeIn(n, name)
}

// ours is how a value of a need begins, in a text that may have braces of others.
var ours = regexp.MustCompile(`\{\{ *\.tasks\b`)

// written is a value as it is written at the beginning of a text.
func written(text string) string {
	if end := strings.Index(text, "}}"); end >= 0 {
		return text[:end+len("}}")]
	}
	return text
}

// early are the fields that are read before the needs have run, and take any text.
var early = []string{"dir", "env", "env_file", "secret_env", "inherit_env", "headers_env", "labels", "concurrency", "input"}

// noUses refuses values in such a field.
func (d *decoder) noUses(f field) {
	if !slices.Contains(early, f.name) {
		return
	}
	before := len(d.r.all)
	uses := d.usesIn(f.value, f.label())
	if len(d.r.all) > before || len(uses) == 0 {
		return
	}
	hint := "values of needs can stand in the arguments of a list run, in env of a task, and in url, headers, json and body of http"
	if f.name == "input" {
		hint = fmt.Sprintf("the code of the task type reads what it needs itself: Type.Output(ctx, %q)", uses[0].path[1])
	}
	d.r.add(uses[0].at, uses[0].named()+" is known only when the job runs, and cannot stand here", hint)
}

// sharedUses refuses values in what all tasks have from the pipeline.
func (d *decoder) sharedUses(root *node) {
	for _, e := range root.entries {
		d.noUses(field{e, "the pipeline"})
	}
}

// shellTemplates refuses values in a text for the shell: whatever they are, the
// shell would read them as code. Braces of others stay, as those of docker
// --format.
func (d *decoder) shellTemplates(f field) {
	at := ours.FindStringIndex(f.value.text)
	if at == nil {
		return
	}
	name := written(f.value.text[at[0]:])
	d.r.add(d.placeIn(f.value, name), fmt.Sprintf("%s in %s would become a part of the shell's code", cut(name), f.label()),
		fmt.Sprintf(`pass it on as a variable: env: {%s: "%s"}, and "$%[1]s" in the command`, variableFor(name), cut(name)))
}

// variableFor makes a name of a variable from the task of a value.
func variableFor(name string) string {
	of := "VALUE"
	if paths := value.Paths(name); len(paths) > 0 && len(paths[0]) > 1 {
		of = paths[0][1]
	}
	letters := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return '_'
		}
		return unicode.ToUpper(r)
	}, of)
	if strings.Trim(letters, "_0123456789") == "" {
		return "VALUE"
	}
	return strings.TrimLeft(letters, "0123456789")
}

// codeFlags are options of programs whose argument is code.
var codeFlags = map[string]string{
	"sh": "c", "bash": "c", "dash": "c", "zsh": "c", "ksh": "c", "fish": "c", "busybox": "c", "su": "c",
	"python": "c", "python3": "c", "perl": "eE", "ruby": "e", "node": "e", "php": "r", "pwsh": "c",
}

// codeArguments refuses values in an argument that a program reads as code.
func (d *decoder) codeArguments(f field) {
	program := ""
	for i, item := range f.value.items {
		if name := path.Base(item.text); codeFlags[name] != "" {
			program = name
		}
		if program == "" || i == 0 || !ours.MatchString(item.text) {
			continue
		}
		flag := f.value.items[i-1].text
		if len(flag) < 2 || flag[0] != '-' || flag[1] == '-' || !strings.ContainsAny(flag[len(flag)-1:], codeFlags[program]) {
			continue
		}
		name := written(item.text[ours.FindStringIndex(item.text)[0]:])
		d.r.add(d.placeIn(item, name), fmt.Sprintf("%s in %s would become a part of the code that %s runs", cut(name), f.label(), program),
			fmt.Sprintf(`give it as a further argument, as in [sh, -c, 'echo "$1"', sh, "%s"], or as a variable in env`, cut(name)))
	}
}

// final returns a text of a field that may have values, as the task's input has
// it: a template if any text of the task has values, else what is written.
func (d *decoder) final(n *node) string {
	if d.filling && !ours.MatchString(n.text) {
		return value.Escape(n.text)
	}
	return n.text
}

// finals does the same for the texts of a mapping that was decoded.
func (d *decoder) finals(f field, texts map[string]string) map[string]string {
	for _, e := range f.value.entries {
		if _, ok := texts[e.name]; ok {
			texts[e.name] = d.final(e.value)
		}
	}
	return texts
}

// finalTree is a value whose texts are final.
func (d *decoder) finalTree(n *node) *node {
	if !d.filling {
		return n
	}
	made := *n
	made.items, made.entries = slices.Clone(n.items), slices.Clone(n.entries)
	for i, item := range made.items {
		made.items[i] = d.finalTree(item)
	}
	for i, e := range made.entries {
		made.entries[i].value = d.finalTree(e.value)
	}
	if made.kind == scalar {
		made.text = d.final(n)
	}
	return &made
}

// checkUses checks that each task has the values that its texts name: those of
// tasks that it needs, which such tasks have, and have also if they failed where
// that may be.
func (d *decoder) checkUses() {
	tasks := make(map[string]*Task, len(d.p.Tasks))
	for i := range d.p.Tasks {
		tasks[d.p.Tasks[i].Name] = &d.p.Tasks[i]
	}
	for _, of := range d.uses {
		t := tasks[of.task]
		if t == nil {
			continue // its name is taken, which is reported
		}
		needs := make(map[string]bool)
		for _, need := range d.needs[t.Name] { // with those that are mistakes
			needs[need.value.text] = true
		}
		for _, need := range t.Needs {
			needs[need] = true
		}
		for _, u := range of.uses {
			if needs[u.path[1]] {
				d.checkUse(t, tasks[u.path[1]], &u)
			} else {
				d.notNeeded(t, tasks[u.path[1]] != nil, &u)
			}
		}
	}
}

// checkUse checks a value of a task that a task needs.
func (d *decoder) checkUse(t, need *Task, u *use) {
	switch {
	case need == nil || need.kind() == "":
		// That is a mistake of its own.
	case need.kind().Check(u.path) != nil:
		wrong := need.kind().Check(u.path)
		d.r.add(u.at, u.of+": "+wrong.Problem, wrong.Hint)
	case t.If == task.OnFailed && !value.Survives(u.path):
		hint := "let that task write a file, and read it"
		if need.kind() == value.Command {
			hint += "; its exit status is " + append(slices.Clone(u.path[:2]), "exit_code").String()
		}
		d.r.add(u.at, fmt.Sprintf("%s: task %s runs when what it needs failed, and a task that failed keeps no .%s", u.named(), quote(t.Name), u.path[2]), hint)
	}
}

// notNeeded reports a value of a task that is no need.
func (d *decoder) notNeeded(t *Task, known bool, u *use) {
	name := u.path[1]
	needs := func() (names []string) {
		for _, need := range d.needs[t.Name] {
			names = append(names, need.value.text)
		}
		return names
	}
	switch {
	case name == t.Name:
		d.r.add(u.at, u.named()+" is of the task itself, which has no output before it ran", "name a task that it needs")
	case !known:
		d.r.addSuggesting(u.at, fmt.Sprintf("%s names %s, which is not in the pipeline", u.named(), quote(name)), func() string {
			for _, known := range [][]string{needs(), d.names} {
				if best := nearest(name, known); best != "" {
					return fmt.Sprintf("did you mean %q?", best)
				}
			}
			return "name a task that it needs"
		})
	default:
		d.r.addSuggesting(u.at, u.named()+" is of a task that is none of its needs", func() string {
			all := append(needs(), name)
			if len(all) > 8 {
				return "add " + cut(name) + " to its needs"
			}
			for i := range all {
				all[i] = cut(all[i])
			}
			return fmt.Sprintf("write needs: [%s]", strings.Join(all, ", "))
		})
	}
}

// kind is what the task is, by which its values are known; "": that is not said.
func (t *Task) kind() value.Kind {
	switch {
	case t.Type != "":
		return value.KindOf(t.Type)
	case t.HTTP != nil:
		return value.Request
	case t.Shell != "" || t.Argv != nil:
		return value.Command
	}
	return ""
}

// literals are texts that stand beside templates.
func literals(texts map[string]string) map[string]string {
	made := make(map[string]string, len(texts))
	for name, text := range texts {
		made[name] = value.Escape(text)
	}
	return made
}
