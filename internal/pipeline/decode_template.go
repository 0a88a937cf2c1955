package pipeline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goweaver/weaver/internal/pipeline/template"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// The worker fills in the values of needs, {{.tasks.fetch.stdout}}. The decoder
// leaves them in the texts, checks that the worker will know them, and sets
// Templates of the task's input.

// use is a reference to a value of a need in a text of a task.
type use struct {
	at   spot
	task string // of the file
	of   string // the field
	path template.Path
}

// named returns the reference as written, and its field.
func (u *use) named() string { return u.path.String() + " in " + u.of }

// use records a reference for checkUses. It reports a path that can never name a
// value.
func (d *decoder) use(n *node, of string, part template.Part) {
	if d.scope.node {
		return // the text was read before, with the whole task
	}
	u := use{d.placeAt(n, part.At), d.scope.task, of, part.Path}
	if wrong := value.CheckPath(part.Path); wrong != nil {
		d.r.add(u.at, of+": "+wrong.Problem, wrong.Hint)
		return
	}
	d.uses = append(d.uses, u)
}

// placeAt returns the place of the reference at a byte offset of a text.
func (d *decoder) placeAt(n *node, at int) spot {
	name := written(n.text[at:])
	for _, quotes := range []string{"", "'", `"`} {
		// If no escape precedes it, a search of the text is not needed.
		if from := n.at.from + len(quotes) + at; from < len(d.r.src.text) && strings.HasPrefix(d.r.src.text[from:], name) {
			return d.r.src.spot(from, from+len(name))
		}
	}
	return d.placeIn(n, name)
}

// ours matches the beginning of a reference, in a text that may contain other
// braces.
var ours = regexp.MustCompile(`\{\{ *\.(tasks|item|params|matrix)\b`)

// written returns the reference at the beginning of a text, as written.
func written(text string) string {
	if end := strings.Index(text, "}}"); end >= 0 {
		return text[:end+len("}}")]
	}
	return text
}

// shellTemplates refuses references in shell text: the shell would read any value
// as code. Other braces stay, such as those of docker --format.
func (d *decoder) shellTemplates(f field) {
	for _, at := range ours.FindAllStringIndex(f.value.text, -1) {
		name := written(f.value.text[at[0]:])
		d.r.add(d.placeIn(f.value, name), fmt.Sprintf("%s in %s would become a part of the shell's code", cut(name), f.label()),
			fmt.Sprintf(`pass it on as a variable: env: {%s: "%s"}, and "$%[1]s" in the command`, variableFor(name), cut(name)))
	}
}

// variableFor derives a variable name from a reference.
func variableFor(name string) string {
	parsed, err := template.Parse(name)
	if err != nil || len(parsed) != 1 || len(parsed[0].Path) == 0 {
		return "VALUE"
	}
	path := parsed[0].Path
	of := path[min(1, len(path)-1)]
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

// codeFlags are the options, by program, whose argument is code.
var codeFlags = map[string]string{
	"sh": "c", "bash": "c", "dash": "c", "zsh": "c", "ksh": "c", "fish": "c", "busybox": "c", "su": "c",
	"python": "c", "python3": "c", "perl": "eE", "ruby": "e", "node": "e", "php": "r", "pwsh": "c",
}

// codeArguments refuses references in arguments that a program runs as code: the
// argument of such an option, also within one word, and every argument of ssh,
// which passes them to a remote shell.
func (d *decoder) codeArguments(f field) {
	program := ""
	for i, item := range f.value.items {
		name := path.Base(item.text)
		if codeFlags[name] != "" || name == "ssh" && i == 0 {
			program = name
			continue
		}
		parsed, err := template.Parse(item.text)
		if program == "" || err != nil || len(parsed.Paths()) == 0 {
			continue
		}
		before := f.value.items[i-1].text
		if program != "ssh" && !hasCode(before, program) && !hasCode(strings.SplitN(item.text, "{{", 2)[0], program) {
			continue
		}
		shown := written(item.text[strings.Index(item.text, "{{"):])
		hint := fmt.Sprintf(`give it as a further argument, as in [sh, -c, 'echo "$1"', sh, "%s"], or as a variable in env`, cut(shown))
		if program == "ssh" {
			hint = "copy it to the other side as a file, or write a text with quotes that you trust: run: ssh HOST …, with env"
		}
		d.r.add(d.placeIn(item, shown), fmt.Sprintf("%s in %s would become a part of the code that %s runs", cut(shown), f.label(), program), hint)
	}
}

// hasCode reports whether an argument is a group of options one of which takes
// code.
func hasCode(arg, program string) bool {
	return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.ContainsAny(strings.SplitN(arg, " ", 2)[0], codeFlags[program])
}

// checkUses requires each referenced value to exist: its task is a need, has such
// a value, and keeps it after a failure where the task may run then.
func (d *decoder) checkUses() {
	if len(d.uses) == 0 {
		return
	}
	nodes := make(map[string]*Task, len(d.p.Tasks))
	for i := range d.p.Tasks {
		nodes[d.p.Tasks[i].Name] = &d.p.Tasks[i]
	}
	var needs map[string]bool
	for i := range d.uses {
		u := &d.uses[i]
		if i == 0 || d.uses[i-1].task != u.task { // uses are grouped by task
			needs = make(map[string]bool)
			for _, need := range d.needs[u.task] {
				needs[need.value.text] = true
			}
		}
		name := u.path[1]
		need := nodes[name]
		needed := needs[name] || need != nil && needs[need.Group]
		_, inFile := d.places[name]
		s := d.shapes[name]
		switch {
		case needed && need != nil && need.From != "":
			d.r.add(u.at, fmt.Sprintf("%s is of a task with one node for each value of %s", u.named(), quote(need.From)), "let each write a file")
		case needed && need != nil:
			d.checkUse(u, need)
		case need == nil && s != nil && s.fate != unneeded && len(s.nodes) > 0:
			d.r.add(u.at, fmt.Sprintf("%s is of a task with %s", u.named(), text.Plural(len(s.nodes), "node")), "name one of them, as "+append(template.Path{value.Root, s.nodes[0]}, u.path[2:]...).String()+", or let each write a file")
		case needed: // it has a reported mistake, has no nodes, or is left out
		default:
			task := name
			if need != nil && need.Group != "" {
				task = need.Group // the task to need
			}
			d.notNeeded(u, task, need != nil || inFile)
		}
	}
}

// checkUse checks a reference to a need.
func (d *decoder) checkUse(u *use, need *Task) {
	failed := d.shapes[u.task] != nil && d.shapes[u.task].cond == task.OnFailed
	switch {
	case need.kind() == "":
		// Reported elsewhere.
	case need.kind().Check(u.path) != nil:
		wrong := need.kind().Check(u.path)
		d.r.add(u.at, u.of+": "+wrong.Problem, wrong.Hint)
	case need.kind() == value.Command && value.File(u.path) != "" && !need.mayKeep(value.File(u.path)):
		d.r.add(u.at, fmt.Sprintf("%s: task %s keeps no file %s", u.of, quote(need.Name), quote(value.File(u.path))), "name it in its artifacts, as in artifacts: "+cut(value.File(u.path)))
	case failed && !value.Survives(u.path):
		hint := "let that task write a file, and read it"
		if need.kind() == value.Command {
			hint += "; its exit status is " + append(slices.Clone(u.path[:2]), "exit_code").String()
		}
		d.r.add(u.at, fmt.Sprintf("%s: task %s runs when what it needs failed, and a task that failed keeps no .%s", u.named(), quote(u.task), u.path[2]), hint)
	}
}

// mayKeep reports whether an artifact pattern of the command matches a file.
func (t *Task) mayKeep(file string) bool {
	return slices.ContainsFunc(slices.Concat(t.Artifacts, t.ArtifactsOptional), func(pattern string) bool {
		ok, err := path.Match(pattern, file)
		return ok && err == nil
	})
}

// notNeeded reports a reference to a task outside the needs.
func (d *decoder) notNeeded(u *use, task string, known bool) {
	name := u.path[1]
	needs := func() (names []string) {
		for _, need := range d.needs[u.task] {
			names = append(names, need.value.text)
		}
		return names
	}
	switch {
	case name == u.task:
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
		if list := d.needs[u.task]; len(list) == 1 && list[0].name == "undo" {
			d.r.add(u.at, u.named()+" is of another task than the one that it undoes", "have that task put the value out, or write a file")
			return
		}
		d.r.addSuggesting(u.at, u.named()+" is of a task that is none of its needs", func() string {
			all := append(needs(), task)
			if len(all) > 8 {
				return "add " + cut(task) + " to its needs"
			}
			for i := range all {
				all[i] = cut(all[i])
			}
			return fmt.Sprintf("write needs: [%s]", strings.Join(all, ", "))
		})
	}
}

// kind returns the kind of the task, which determines its values, or "" if the
// task defines no work.
func (t *Task) kind() value.Kind {
	switch {
	case t.Type != "":
		return value.KindOf(t.Type)
	case t.Approve != nil:
		return value.Other
	case t.HTTP != nil:
		return value.Request
	case t.Shell != "" || t.Argv != nil:
		return value.Command
	}
	return ""
}

// literals escapes texts that stand next to templates.
func literals(texts map[string]string) map[string]string {
	made := make(map[string]string, len(texts))
	for name, text := range texts {
		made[name] = value.Escape(text)
	}
	return made
}
