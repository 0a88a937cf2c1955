package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goweaver/weaver/task"
)

// decoder fills a Pipeline from a tree and reports every mistake on the way.
type decoder struct {
	r *reporter
}

func (d *decoder) pipeline(root *node) *Pipeline {
	p := &Pipeline{}
	if root.kind != mapping {
		d.r.add(root.at, "the file is "+root.describe()+", not a mapping", form)
		return p
	}
	tasks := &taskList{decoder: d, p: p}
	d.keys(root, "the pipeline", pipelineLevel, func(e entry) {
		switch e.name {
		case "name":
			if name, ok := d.text(e, "the pipeline", "nightly-report"); ok && d.name(e.spot(), "the name of the pipeline", name, "nightly-report") {
				p.Name = name
			}
		case "description":
			d.text(e, "the pipeline", "what it is for")
		case "budget":
			d.budget(e, &p.Budget)
		case "env":
			p.Env = d.env(e, "the pipeline")
		case "inherit_env":
			p.InheritEnv = d.inheritEnv(e, "the pipeline")
		case "dir":
			p.Dir = d.dir(e, "the pipeline")
		case "labels":
			p.Labels = d.labels(e, "the pipeline")
		}
	})
	whole := d.r.src.whole()
	if pipelineLevel.lacks(root, "name") {
		d.r.add(whole, "the pipeline has no name", "write name: nightly-report at the top")
	}
	if e, ok := root.get("tasks"); ok {
		tasks.read(e) // at last: it looks at the budget
	} else if pipelineLevel.lacks(root, "tasks") {
		d.r.add(whole, "the pipeline has no tasks", form)
	}
	return p
}

func (d *decoder) budget(e entry, b *Budget) {
	const where = "the budget"
	if !d.mapping(e, "the pipeline", "{max_attempts_per_task: 3, max_duration: 10m}") {
		return
	}
	d.keys(e.value, where, budgetLevel, func(e entry) {
		switch e.name {
		case "max_attempts_per_task":
			b.MaxAttemptsPerTask = d.whole(e, where, 1, maxAttempts, "3")
		case "max_duration":
			b.MaxDuration = d.duration(e, where, "10m")
		}
	})
}

// keys hands over the entries whose keys a level has, each once, and reports
// the others.
func (d *decoder) keys(m *node, where string, l *level, use func(entry)) {
	d.onlyOnce(m, where)
	for _, e := range m.entries {
		if slices.Contains(l.keys, e.name) {
			use(e)
			continue
		}
		if meanwhile, ok := l.later[e.name]; ok {
			d.r.add(e.at, fmt.Sprintf("%q of %s is not built yet", e.name, where), meanwhile)
			continue
		}
		d.r.addSuggesting(e.at, fmt.Sprintf("unknown key %s of %s", quote(e.name), where), func() string { return adviseKey(e.name, l) })
	}
}

func (d *decoder) onlyOnce(m *node, where string) {
	for _, t := range m.twice {
		d.r.add(t.at, fmt.Sprintf("the key %s of %s stands twice, first in line %d", quote(t.name), where, t.first.line), "keep one of them")
	}
}

// describe says what a value is.
func (n *node) describe() string {
	switch n.kind {
	case list:
		return "a list"
	case mapping:
		return "a mapping"
	case scalar:
		if !n.plain {
			return "a text"
		}
		switch plainKind(n.text) {
		case plainNumber, plainOddNumber:
			return "the number " + cut(n.text)
		case plainTrue, plainFalse:
			return cut(n.text)
		}
		return "the text " + quote(n.text)
	}
	return "nothing"
}

// wrong reports a value of another kind than wanted. The example is a value.
func (d *decoder) wrong(e entry, where, wanted, example string) {
	if e.value.kind == nothing {
		hint := fmt.Sprintf("write for example %s: %s", e.name, example)
		if !slices.Contains([]string{"name", "run", "http", "type", "url", "key"}, e.name) {
			hint += ", or leave the key out"
		}
		d.r.add(e.spot(), fmt.Sprintf("%q of %s has no value", e.name, where), hint)
		return
	}
	d.r.add(e.spot(), fmt.Sprintf("%q of %s is %s, not %s", e.name, where, e.value.describe(), wanted), fmt.Sprintf("write for example %s: %s", e.name, example))
}

func (d *decoder) mapping(e entry, where, example string) bool {
	if e.value.kind != mapping {
		d.wrong(e, where, "a mapping", example)
		return false
	}
	return true
}

// text takes any scalar as it is written: 8080 and true are texts too.
func (d *decoder) text(e entry, where, example string) (string, bool) {
	if e.value.kind != scalar {
		d.wrong(e, where, "a text", example)
		return "", false
	}
	return e.value.text, d.storable(e.spot(), fmt.Sprintf("%q of %s", e.name, where), e.value.text)
}

// storable refuses what no environment, argument or store can hold.
func (d *decoder) storable(at spot, what, text string) bool {
	if strings.ContainsRune(text, 0) {
		d.r.add(at, what+" contains a NUL character", `remove \0`)
		return false
	}
	return true
}

// filled is text that is not empty.
func (d *decoder) filled(e entry, where, example string) (string, bool) {
	text, ok := d.text(e, where, example)
	if ok && strings.TrimSpace(text) == "" {
		d.r.add(e.spot(), fmt.Sprintf("%q of %s is empty", e.name, where), fmt.Sprintf("write for example %s: %s", e.name, example))
		return "", false
	}
	return text, ok
}

// name checks the name of a pipeline or task.
func (d *decoder) name(at spot, what, name, example string) bool {
	switch {
	case name == "":
		d.r.add(at, what+" is empty", "write for example "+example)
	case len(name) > MaxName:
		d.r.add(at, fmt.Sprintf("%s is %d bytes long, and at most %d are allowed", what, len(name), MaxName), "shorten it")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		d.r.add(at, what+" has characters that cannot be printed", "keep letters, digits, spaces and signs, in one line")
	case strings.TrimSpace(name) != name:
		d.r.add(at, what+" begins or ends with a space", "remove it")
	default:
		return true
	}
	return false
}

// whole reads a whole number without quotes; 0 when there is a problem.
func (d *decoder) whole(e entry, where string, least, most int, example string) int {
	n, ok := 0, false
	if e.value.kind == scalar && e.value.plain {
		n, ok = wholeNumber(e.value.text)
	}
	switch {
	case !ok && e.value.kind == scalar && !e.value.plain:
		if _, number := wholeNumber(e.value.text); number {
			d.r.add(e.spot(), fmt.Sprintf("%q of %s is a text, not a number", e.name, where), fmt.Sprintf("write it without quotes: %s: %s", e.name, e.value.text))
			return 0
		}
		fallthrough
	case !ok:
		d.wrong(e, where, "a whole number", example)
	case n < least || n > most:
		d.r.add(e.spot(), fmt.Sprintf("%q of %s is %s, and must be from %d to %d", e.name, where, cut(e.value.text), least, most), fmt.Sprintf("write for example %s: %s", e.name, example))
	default:
		return n
	}
	return 0
}

func (d *decoder) duration(e entry, where, example string) time.Duration {
	if e.value.kind != scalar {
		d.wrong(e, where, "a duration", example)
		return 0
	}
	length, problem, hint := parseDuration(e.value.text)
	if problem != "" {
		if hint == "" {
			hint = fmt.Sprintf("write for example %s: %s", e.name, example)
		}
		d.r.add(e.spot(), fmt.Sprintf("%q of %s is %s, %s", e.name, where, quote(e.value.text), problem), hint)
	}
	return length
}

// names reads a list of names; one alone needs no brackets.
func (d *decoder) names(e entry, where, example string) []entry {
	switch e.value.kind {
	case scalar:
		return []entry{e}
	case list:
		names := make([]entry, 0, len(e.value.items))
		for _, item := range e.value.items {
			in := entry{name: e.name, at: item.at, value: item}
			if item.kind != scalar {
				d.wrongItem(e, in, where, example)
				continue
			}
			names = append(names, in)
		}
		return names
	}
	d.wrong(e, where, "a list of names", example)
	return nil
}

// wrongItem reports an entry of a list that is no text.
func (d *decoder) wrongItem(e, item entry, where, example string) {
	hint := fmt.Sprintf("write for example %s: %s", e.name, example)
	if item.value.kind == mapping {
		hint += `; a text with a colon needs quotes: "a:b"`
	}
	d.r.add(item.value.at, fmt.Sprintf("an entry of %q of %s is %s, not a text", e.name, where, item.value.describe()), hint)
}

// texts reads a mapping of texts. check may refuse a name.
func (d *decoder) texts(e entry, where, example string, check func(entry) bool) map[string]string {
	if !d.mapping(e, where, example) {
		return nil
	}
	where = fmt.Sprintf("%q of %s", e.name, where)
	d.onlyOnce(e.value, where)
	texts := make(map[string]string, len(e.value.entries))
	for _, e := range e.value.entries {
		switch {
		case !check(e):
		case e.value.kind == nothing:
			d.r.add(e.spot(), fmt.Sprintf("%s of %s has no value", quote(e.name), where), `write "" for an empty text`)
		case e.value.kind != scalar:
			d.r.add(e.spot(), fmt.Sprintf("%s of %s is %s, not a text", quote(e.name), where, e.value.describe()), "write for example "+example)
		case d.storable(e.spot(), quote(e.name)+" of "+where, e.value.text):
			texts[e.name] = e.value.text
		}
	}
	return texts
}

func (d *decoder) env(e entry, where string) map[string]string {
	return d.texts(e, where, "{LANG: C, PORT: 8080}", func(v entry) bool {
		return d.variable(v.at, e.name, where, v.name)
	})
}

// variable checks the name of a variable of the environment.
func (d *decoder) variable(at spot, key, where, name string) bool {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		d.r.add(at, fmt.Sprintf("%s in %q of %s cannot name a variable", quote(name), key, where), "write a name such as LANG or AWS_REGION, without spaces and =")
		return false
	}
	return true
}

func (d *decoder) inheritEnv(e entry, where string) []string {
	var names []string
	for _, item := range d.names(e, where, "[AWS_REGION, GIT_*]") {
		name := item.value.text
		if !d.variable(item.spot(), e.name, where, name) {
			continue
		}
		if star := strings.IndexByte(name, '*'); star >= 0 && star < len(name)-1 {
			d.r.add(item.spot(), fmt.Sprintf("%s in %q of %s has a * that is not at its end", quote(name), e.name, where), "write GIT_* for all names that begin with GIT_")
			continue
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (d *decoder) dir(e entry, where string) string {
	dir, _ := d.filled(e, where, "work")
	return dir
}

func (d *decoder) labels(e entry, where string) map[string]string {
	return d.texts(e, where, "{team: data}", func(l entry) bool {
		if l.name == "" || len(l.name) > 255 {
			d.r.add(l.at, fmt.Sprintf("a label of %s has a name of %d bytes", where, len(l.name)), "use 1 to 255 bytes")
			return false
		}
		return d.storable(l.at, "the name of a label of "+where, l.name)
	})
}

// limits that the stores share
const (
	maxAttempts = 1_000_000
	minPriority = task.MinPriority
	maxPriority = task.MaxPriority
)
