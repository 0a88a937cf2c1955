package pipeline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// decoder fills a [Pipeline] from a tree and reports every mistake it meets. The
// Pipeline is valid only if there are no mistakes. A method that returns a value
// returns "", 0 or nil after it reports a mistake in that value.
type decoder struct {
	r        *reporter
	warnings *reporter
	p        *Pipeline
	given    Given

	names   []string            // of all tasks of the file, including those with mistakes
	places  map[string]spot     // by task name
	needs   map[string][]field  // as written, by task name
	shapes  map[string]*shape   // by task name, including tasks of included files
	entries []entry             // of p.Tasks
	nodes   map[string]struct{} // names of p.Tasks and of included tasks

	attempts bool // a task sets its number of attempts
	budgetAt spot // of max_attempts_per_task

	params     map[string]*param
	paramNames []string
	scope      scope // values that the present texts may name
	filled     int   // bytes of texts after filling in values
	uses       []use // references to values of needs
	froms      []from

	hookTasks   []Task // of the key on, without needs
	hookEntries []entry

	included      map[string]string // path of the included file, by task name
	includedTasks []Task
	includedBytes int
	others        []*decoder // of included files
}

// Limits that the stores share.
const (
	maxAttempts = 1_000_000
	maxCost     = min(task.MaxSpend, math.MaxInt)
	maxKeyBytes = task.MaxKey // of a label, its name, and a concurrency key
)

// failed reports whether the file, or one that it includes, has a mistake.
func (d *decoder) failed() bool {
	return d.r.failed() || slices.ContainsFunc(d.others, func(inner *decoder) bool { return inner.r.failed() })
}

func (d *decoder) pipeline(root *node) {
	if root.kind != mapping {
		d.r.add(root.at, "the file is "+root.describe()+", not a mapping", form)
		return
	}
	d.readParams(root)
	f := d.fields(root, "the pipeline", pipelineLevel)
	if pipelineLevel.lacks(root, "name") {
		d.r.add(d.r.src.whole(), "the pipeline has no name", "write name: nightly-report at the top")
	}
	d.checkTimeout(root)
	if f.include != nil {
		d.includes(*f.include)
	}
	if f.on != nil {
		d.hooks(*f.on)
	}
	switch {
	case f.tasks != nil:
		d.tasks(*f.tasks) // last: it uses the budget and retry
	case f.include != nil:
		d.join(*f.include)
	case pipelineLevel.lacks(root, "tasks"):
		d.r.add(d.r.src.whole(), "the pipeline has no tasks", form)
	}
	d.checkOwnRetry(f)
}

// checkOwnRetry requires a number of attempts in the retry of a file or in its
// tasks.
func (d *decoder) checkOwnRetry(f topFields) {
	if f.retry != nil {
		d.checkAttempts(*f.retry, d.attempts)
	}
}

// topFields are the top-level fields that the decoder reads out of the file's
// order.
type topFields struct{ tasks, retry, on, include *field }

// fields reads the keys at the top of a file.
func (d *decoder) fields(root *node, of string, keys *level) (top topFields) {
	d.keys(root, of, keys, func(f field) {
		switch f.name {
		case "name":
			if name, ok := d.text(f, "nightly-report"); ok {
				d.name(f.spot(), "the name of the pipeline", name, "nightly-report")
				d.p.Name = name
			}
		case "description":
			d.text(d.finalField(f, atRead), "what it is for")
		case "budget":
			d.budget(f)
		case "include":
			top.include = &f
		case "env":
			d.p.Env = d.env(f)
		case "inherit_env":
			d.p.InheritEnv = d.inheritEnv(f)
		case "env_file":
			d.p.EnvFile = d.envFile(f)
		case "secret_env":
			d.p.SecretEnv = d.secretEnv(f)
		case "dir":
			d.p.Dir = d.dir(f)
		case "timeout":
			d.p.Timeout = d.duration(f, "2m")
		case "retry":
			top.retry = &f
		case "labels":
			d.p.Labels = d.labels(f)
		case "schedule":
			d.p.Schedule = d.schedule(f)
		case "max_parallel":
			d.p.Parallel = d.whole(f, 1, maxAttempts, "4")
		case "on":
			top.on = &f
		case "tasks":
			top.tasks = &f
		}
	})
	if top.retry != nil {
		d.p.Retry = d.retry(*top.retry) // it uses the budget
	}
	return top
}

// checkTimeout refuses an attempt timeout longer than the budget of the whole job:
// the author probably meant the job's limit.
func (d *decoder) checkTimeout(root *node) {
	if whole := d.p.Budget.MaxDuration; whole > 0 && d.p.Timeout > whole {
		e, _ := root.get("timeout")
		d.r.add(e.spot(), fmt.Sprintf(`"timeout" of the pipeline is %s, and the budget gives the whole job %s`, text.Setting(d.p.Timeout), text.Setting(whole)),
			"write a shorter one: it limits one attempt of each task, and max_duration of the budget the job")
	}
}

func (d *decoder) budget(f field) {
	if !d.mapping(f, "{max_attempts_per_task: 3, max_duration: 10m}") {
		return
	}
	d.keys(f.value, "the budget", budgetLevel, func(f field) {
		switch f.name {
		case "max_attempts_per_task":
			d.p.Budget.MaxAttemptsPerTask = d.whole(f, 1, maxAttempts, "3")
			d.budgetAt = f.spot()
		case "max_total_attempts":
			d.p.Budget.MaxTotalAttempts = d.whole(f, 1, maxAttempts, "50")
		case "max_duration":
			d.p.Budget.MaxDuration = d.duration(f, "10m")
		case "max_cost":
			d.p.Budget.MaxCost = d.whole(f, 1, maxCost, "5000000")
		case "max_repairs":
			d.p.Budget.MaxRepairs = d.whole(f, 1, maxAttempts, "2")
		case "max_no_progress":
			d.p.Budget.MaxNoProgress = d.whole(f, 1, maxAttempts, "50")
		}
	})
}

// field is an entry of a mapping and a description of the mapping, as in "task
// \"a\"".
type field struct {
	entry
	of string
}

// label returns the field's name for messages: "timeout" of task "a".
func (f field) label() string { return quote(f.name) + " of " + f.of }

// example returns a hint: write for example timeout: 2m.
func (f field) example(value string) string {
	return fmt.Sprintf("write for example %s: %s", f.name, value)
}

// item returns one item of the field's list as a field.
func (f field) item(n *node) field {
	return field{entry{name: f.name, at: n.at, value: n}, f.of}
}

// keys calls use once for each entry with a key of the level, and reports all
// other keys.
func (d *decoder) keys(m *node, of string, l *level, use func(field)) {
	d.onlyOnce(m, of)
	for _, e := range m.entries {
		f := field{e, of}
		switch {
		case slices.Contains(l.keys, e.name):
			use(f)
		case (l == pipelineLevel || l == includedLevel) && strings.HasPrefix(e.name, "x-"): // for anchors of the file's author
		default:
			d.r.addSuggesting(e.at, "unknown key "+f.label(), func() string { return adviseKey(e.name, l) })
		}
	}
}

func (d *decoder) onlyOnce(m *node, of string) {
	for _, dup := range m.duplicates {
		d.r.add(dup.at, fmt.Sprintf("the key %s of %s stands twice, first in line %d", quote(dup.name), of, dup.first.line), "keep one of them")
	}
}

// describe returns the kind and value of a node, for messages.
func (n *node) describe() string {
	switch n.kind {
	case list:
		return "a list"
	case mapping:
		return "a mapping"
	case scalar:
		switch kind := plainKind(n.text); {
		case !n.plain:
			return "a text"
		case kind == plainNumber, kind == plainOddNumber:
			return "the number " + cut(n.text)
		case kind == plainTrue, kind == plainFalse:
			return cut(n.text)
		}
		return "the text " + quote(n.text)
	}
	return "nothing"
}

// wrong reports a value of the wrong kind.
func (d *decoder) wrong(f field, wanted, example string) {
	if f.value.kind != nothing {
		d.r.add(f.spot(), fmt.Sprintf("%s is %s, not %s", f.label(), f.value.describe(), wanted), f.example(example))
		return
	}
	hint := f.example(example)
	if !slices.Contains([]string{"name", "run", "http", "type", "url", "key"}, f.name) {
		hint += ", or leave the key out"
	}
	d.r.add(f.spot(), f.label()+" has no value", hint)
}

func (d *decoder) mapping(f field, example string) bool {
	if f.value.kind != mapping {
		d.wrong(f, "a mapping", example)
	}
	return f.value.kind == mapping
}
