package pipeline

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// tasks reads all tasks and then checks the relations between them.
func (d *decoder) tasks(f field) {
	if f.value.kind != mapping {
		d.notTasks(f)
		return
	}
	for _, dup := range f.value.duplicates {
		d.r.add(dup.at, fmt.Sprintf("two tasks are named %s, in lines %d and %d", quote(dup.name), dup.first.line, dup.at.line), "rename one of them")
	}
	entries := f.value.entries
	switch n := len(entries); {
	case n == 0:
		d.r.add(f.spot(), "the pipeline has no tasks", form)
		return
	case n > MaxTasks:
		d.r.add(f.at, fmt.Sprintf("the pipeline has %d tasks, and at most %d are allowed", n, MaxTasks), "split it into several pipelines")
		return
	}
	for _, e := range entries {
		d.names = append(d.names, e.name)
		d.places[e.name] = e.at
	}
	for _, e := range entries {
		d.name(e.at, "the name of the task "+quote(e.name), e.name, "fetch")
		d.readTask(e)
	}
	d.scope = scope{}
	d.join(f)
}

// join checks and adds the relations between tasks after all tasks have been read.
func (d *decoder) join(f field) {
	d.checkNeeds()
	d.addUndos()
	d.addIncluded(f)
	d.checkUndos(f)
	d.addHooks()
	d.checkFroms()
	d.checkUses()
	if !d.r.failed() {
		d.checkInputs(f)
	}
}

func (d *decoder) notTasks(f field) {
	hint := form
	switch {
	case f.value.kind == nothing:
		d.r.add(f.at, "the pipeline has no tasks", form)
		return
	case f.value.kind == list && len(f.value.items) > 0:
		hint = "write each task under its name, without a dash:\n    tasks:\n      fetch: {run: \"curl -sf https://example.com/data.csv -o data.csv\"}"
	}
	d.r.add(f.spot(), fmt.Sprintf("%s is %s, not a mapping of names to tasks", f.label(), f.value.describe()), hint)
}

// task reads a hook, or a node of the file's task in the scope of its values.
func (d *decoder) task(e entry, name string, keys *level) Task {
	of := "task " + quote(name)
	t := Task{Name: name}
	d.scope.open = d.opens(e.value)
	t.Templates = d.scope.open
	d.keys(e.value, of, keys, func(f field) {
		switch f.name {
		case "description":
			d.text(d.finalField(f, atRead), "what it is for")
		case "run":
			d.run(f, &t)
		case "http":
			t.HTTP = d.http(f)
		case "approve":
			t.Approve = d.approve(f)
		case "type":
			t.Type = d.typeName(f)
		case "input":
			t.Input = d.json(nil, f.value, f.label(), atRead, 0)
		case "needs":
			d.needs[e.name] = d.nameList(f, "[fetch]")
		case "if":
			t.If = d.condition(f)
		case "allow_failure":
			t.AllowFailure = d.yes(f)
		case "retry":
			t.Retry = d.retry(f)
			d.attempts = d.attempts || t.Retry.MaxAttempts > 0
			d.checkAttempts(f, d.p.Retry.MaxAttempts > 0)
		case "timeout":
			t.Timeout = d.duration(f, "2m")
		case "env":
			t.Env = d.env(f)
		case "inherit_env":
			t.InheritEnv = d.inheritEnv(f)
		case "env_file":
			t.EnvFile = d.envFile(f)
		case "secret_env":
			t.SecretEnv = d.secretEnv(f)
		case "dir":
			t.Dir = d.dir(f)
		case "artifacts":
			t.Artifacts = d.filePatterns(f)
		case "artifacts_optional":
			t.ArtifactsOptional = d.filePatterns(f)
		case "artifacts_ttl":
			t.ArtifactsTTL = d.duration(f, "720h")
		case "labels":
			t.Labels = d.labels(f)
		case "concurrency":
			d.concurrency(f, &t)
		case "undo":
			t.Undo = d.undo(f, e, name)
		default:
			if o := option.Named(f.name, option.Pipeline); o != nil {
				d.option(f, o, &t)
			}
		}
	})
	d.checkWork(e, of, keys)
	if keys == undoLevel {
		d.checkUndo(e, of)
	}
	if keys == taskLevel {
		d.checkCondition(e, of)
		d.checkForeachFrom(e, of)
	}
	return t
}

// option sets the field of an option that holds one value.
func (d *decoder) option(f field, o *option.Spec, t *Task) {
	switch example := o.Example.(type) {
	case int:
		o.Set(t, d.whole(f, o.Least, o.Most, strconv.Itoa(example)))
	case string:
		o.Set(t, d.key(f, example))
	case bool:
		o.Set(t, d.yes(f))
	}
}

// notTask suggests a correction for a task that is not a mapping.
func (d *decoder) notTask(e entry, of string) {
	name, message := cut(e.name), fmt.Sprintf("%s is %s, not a mapping", of, e.value.describe())
	switch e.value.kind {
	case nothing:
		d.r.add(e.at, of+" is empty", fmt.Sprintf("write for example %s: {run: \"echo hello\"}", name))
	case scalar:
		d.r.add(e.spot(), message, fmt.Sprintf("write %s: {run: %s}", name, quote(e.value.text)))
	default:
		d.r.add(e.spot(), message, fmt.Sprintf("write for example %s: {run: [python3, clean.py]}", name))
	}
}

// checkWork requires exactly one work key per task, and other keys that fit it.
func (d *decoder) checkWork(e entry, of string, keys *level) {
	given := worksOf(e.value)
	switch {
	case len(given) > 1:
		names := make([]string, 0, len(given))
		for _, w := range given {
			names = append(names, quote(w.name))
		}
		d.r.add(given[len(given)-1].at, of+" has "+strings.Join(names, " and "), "keep one of them, and give each other one a task of its own")
		return
	case len(given) == 0:
		if keys.lacks(e.value, works...) {
			question := `, approve: "a question"`
			if keys != taskLevel {
				question = ""
			}
			d.r.add(e.at, of+" says nothing to do", `give it run: "a command", http: {url: …}`+question+` or type: acme.billing.charge.v1`)
		}
		return
	}
	work := given[0].name
	switch work {
	case "approve":
		d.checkApprove(e, of)
	case "http":
		d.checkUntil(e, of)
	}
	for _, key := range commandKeys {
		if found, ok := e.value.get(key); ok && work != "run" {
			hint := "remove it"
			if key == "env_file" && work == "http" {
				if request, _ := e.value.get("http"); request.value != nil {
					if _, ok := request.value.get("headers_env"); ok {
						continue
					}
				}
			}
			if (key == "secret_env" || key == "env_file") && work == "http" {
				hint = "write headers_env in http, as in headers_env: {Authorization: API_TOKEN}"
			}
			d.r.add(found.at, fmt.Sprintf("%q of %s is for commands, and the task has %q", key, of, work), hint)
		}
	}
	if found, ok := e.value.get("input"); ok && work != "type" {
		d.r.add(found.at, fmt.Sprintf(`"input" of %s is for a task with a type, and the task has %q`, of, work), "remove it; a command takes arguments and env, a request takes json or body")
	}
}

// commandKeys are the keys that only commands may have.
var commandKeys = []string{"env", "inherit_env", "env_file", "secret_env", "dir", "artifacts", "artifacts_optional", "artifacts_ttl"}

// filePatterns reads patterns of files in the command's folder.
func (d *decoder) filePatterns(f field) (patterns []string) {
	const example = "[out/*.csv]"
	switch f.value.kind {
	case scalar:
	case list:
		if len(f.value.items) == 0 {
			d.r.add(f.spot(), f.label()+" is an empty list", f.example(example))
		}
	default:
		d.wrong(f, "a pattern or a list of patterns", example)
		return nil
	}
	for _, item := range d.nameList(f, example) {
		item.value = d.final(item.value, "an entry of "+f.label(), atRead)
		if err := value.CheckPattern(item.value.text); err != nil {
			d.r.add(item.spot(), fmt.Sprintf("%s in %s is not a file pattern: %v", quote(item.value.text), f.label(), err), f.example(example))
			continue
		}
		patterns = append(patterns, item.value.text)
	}
	return patterns
}

func (d *decoder) run(f field, t *Task) {
	const example = "[python3, clean.py]"
	switch {
	case f.value.kind == scalar:
		t.Shell = d.filledText(f, `"python3 clean.py"`)
		d.shellTemplates(f)
	case f.value.kind != list:
		d.wrong(f, "a command", `"python3 clean.py", or `+example)
	case len(f.value.items) == 0:
		d.r.add(f.spot(), f.label()+" is an empty list", f.example(example))
	default:
		d.codeArguments(f)
		for i, item := range f.value.items {
			item = d.final(item, "an entry of "+f.label(), atRun)
			t.Argv = append(t.Argv, item.text)
			switch {
			case item.kind != scalar:
				d.wrongItem(f, item, example)
			case i == 0 && strings.TrimSpace(item.text) == "":
				d.r.add(item.at, f.label()+" begins with an empty text, and not with a program", f.example(example))
			case i == 0 && strings.Contains(item.text, " ") && !strings.ContainsAny(item.text, `/\`):
				d.r.add(item.at, fmt.Sprintf("%s begins with %s, which is not a program: a list is one command and its arguments", f.label(), quote(item.text)),
					f.example(example)+", or several commands as a text, one per line: run: |")
			default:
				d.checkNUL(item.at, f.label(), item.text)
			}
		}
		d.warnArguments(f)
	}
}

func (d *decoder) typeName(f field) string {
	const example = "acme.billing.charge.v1"
	name := d.filledText(f, example)
	if name != "" && task.CheckTypeName(name) != nil {
		d.r.add(f.spot(), fmt.Sprintf("%s is %s, which cannot name a task type", f.label(), quote(name)),
			"write four parts of a-z, 0-9 and _ joined by dots, the last a version, as in "+example)
	}
	return name
}

const retryExample = "{max_attempts: 3, base: 1s}"

func (d *decoder) retry(f field) Retry {
	var retry Retry
	if !d.mapping(f, retryExample) {
		return retry
	}
	of := "retry of " + f.of
	d.keys(f.value, of, retryLevel, func(f field) {
		switch f.name {
		case "max_attempts":
			retry.MaxAttempts = d.whole(f, 1, maxAttempts, "3")
		case "base":
			retry.Base = d.duration(f, "1s")
		case "max":
			retry.Max = d.duration(f, "5m")
		}
	})
	d.checkPauses(f, of, retry)
	d.warnBudget(f, of, retry.MaxAttempts)
	return retry
}

// warnBudget warns of more attempts than the budget allows a task.
func (d *decoder) warnBudget(f field, of string, attempts int) {
	most := d.p.Budget.MaxAttemptsPerTask
	if most == 0 || attempts <= most {
		return
	}
	budget := "max_attempts_per_task of the budget"
	if d.budgetAt.line > 0 {
		budget += fmt.Sprintf(" (line %d)", d.budgetAt.line)
	}
	e, _ := f.value.get("max_attempts")
	d.warnings.add(e.spot(), fmt.Sprintf("max_attempts of %s is %d, and %s is %d, which is what counts", of, attempts, budget, most),
		fmt.Sprintf("write max_attempts: %d, or raise the budget to %d", most, attempts))
}

// checkAttempts requires a number of attempts in this retry, in the budget, or
// elsewhere.
func (d *decoder) checkAttempts(f field, elsewhere bool) {
	if f.value.kind == mapping && !elsewhere && d.p.Budget.MaxAttemptsPerTask == 0 && retryLevel.lacks(f.value, "max_attempts") {
		d.r.add(f.at, "retry of "+f.of+" does not say how often", f.example(retryExample))
	}
}

// checkPauses requires max ≥ base, including where one of them comes from the
// pipeline.
func (d *decoder) checkPauses(f field, of string, retry Retry) {
	first, longest := cmp.Or(retry.Base, d.p.Retry.Base), cmp.Or(retry.Max, d.p.Retry.Max)
	if longest == 0 || first <= longest {
		return
	}
	const hint = "the pauses grow from base to max"
	if own, ok := f.value.get("max"); ok {
		whose := "its base"
		if retry.Base == 0 {
			whose = "base of retry of the pipeline"
		}
		d.r.add(own.spot(), fmt.Sprintf("max of %s is shorter than %s", of, whose), hint)
	} else if own, ok := f.value.get("base"); ok {
		d.r.add(own.spot(), fmt.Sprintf("base of %s is longer than max of retry of the pipeline", of), hint)
	}
}

func (d *decoder) concurrency(f field, t *Task) {
	of := "concurrency of " + f.of
	switch f.value.kind {
	case scalar:
		if _, number := wholeNumber(f.value.text); number && f.value.plain {
			d.r.add(f.spot(), fmt.Sprintf("%s is a number, not a key: the name of what its tasks share", f.label()),
				fmt.Sprintf("write for example concurrency: {key: database, limit: %s}", cut(f.value.text)))
			return
		}
		t.ConcurrencyKey = d.key(f, "database")
	case mapping:
		d.keys(f.value, of, concurrencyLevel, func(f field) {
			switch f.name {
			case "key":
				t.ConcurrencyKey = d.key(f, "database")
			case "limit":
				t.ConcurrencyLimit = d.whole(f, 1, maxAttempts, "2")
			}
		})
		if concurrencyLevel.lacks(f.value, "key") {
			d.r.add(f.at, of+" has no key", f.example("{key: database, limit: 2}"))
		}
	default:
		d.wrong(f, "a key, or a key and a limit", "database, or concurrency: {key: database, limit: 2}")
	}
}

// key reads a text that stores index, such as a concurrency key.
func (d *decoder) key(f field, example string) string {
	key := d.filledText(d.finalField(f, atRead), example)
	if len(key) > maxKeyBytes {
		d.r.add(f.spot(), fmt.Sprintf("%s is %d bytes long, and at most %d are allowed", f.label(), len(key), maxKeyBytes), "shorten it")
	}
	return key
}
