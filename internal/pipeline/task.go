package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// taskList reads the tasks and checks what lies between them.
type taskList struct {
	*decoder
	p *Pipeline

	order  []string           // the names of all tasks, also of those with mistakes
	places map[string]spot    // of the names
	needs  map[string][]entry // as written
}

func (l *taskList) read(e entry) {
	if e.value.kind != mapping {
		l.notTasks(e)
		return
	}
	tasks := e.value
	for _, t := range tasks.twice {
		l.r.add(t.at, fmt.Sprintf("two tasks are named %s, in lines %d and %d", quote(t.name), t.first.line, t.at.line), "rename one of them")
	}
	switch n := len(tasks.entries); {
	case n == 0:
		l.r.add(e.spot(), "the pipeline has no tasks", form)
		return
	case n > MaxTasks:
		l.r.add(e.at, fmt.Sprintf("the pipeline has %d tasks, and at most %d are allowed", n, MaxTasks), "split it into several pipelines")
		return
	}
	l.places = make(map[string]spot, len(tasks.entries))
	l.needs = make(map[string][]entry, len(tasks.entries))
	for _, t := range tasks.entries {
		l.order = append(l.order, t.name)
		l.places[t.name] = t.at
	}
	for _, t := range tasks.entries {
		l.name(t.at, "the name of the task "+quote(t.name), t.name, "fetch")
		l.task(t)
	}
	l.checkNeeds()
	l.checkInputs(e)
}

func (l *taskList) notTasks(e entry) {
	hint := form
	switch {
	case e.value.kind == nothing:
		l.r.add(e.at, "the pipeline has no tasks", hint)
		return
	case e.value.kind == list && len(e.value.items) > 0:
		hint = "write each task under its name, without a dash:\n    tasks:\n      fetch: {run: \"curl -sf https://example.com/data.csv -o data.csv\"}"
	}
	l.r.add(e.spot(), fmt.Sprintf("%q of the pipeline is %s, not a mapping of names to tasks", e.name, e.value.describe()), hint)
}

func (l *taskList) task(e entry) {
	where := "task " + quote(e.name)
	if e.value.kind != mapping {
		l.notTask(e, where)
		return
	}
	t := Task{Name: e.name}
	l.keys(e.value, where, taskLevel, func(e entry) {
		switch e.name {
		case "description":
			l.text(e, where, "what it is for")
		case "run":
			l.run(e, where, &t)
		case "http":
			t.HTTP = l.http(e, where)
		case "type":
			t.Type = l.typeName(e, where)
		case "input":
			t.Input = l.json(nil, e.value, fmt.Sprintf("%q of %s", e.name, where), 0)
		case "needs":
			l.needs[t.Name] = l.names(e, where, "[fetch]")
		case "retry":
			l.retry(e, where, &t)
		case "timeout":
			t.Timeout = l.duration(e, where, "2m")
		case "env":
			t.Env = l.env(e, where)
		case "inherit_env":
			t.InheritEnv = l.inheritEnv(e, where)
		case "dir":
			t.Dir = l.dir(e, where)
		case "labels":
			t.Labels = l.labels(e, where)
		case "concurrency":
			l.concurrency(e, where, &t)
		case "priority":
			t.Priority = l.whole(e, where, minPriority, maxPriority, "5")
		}
	})
	l.one(e, where)
	l.p.Tasks = append(l.p.Tasks, t)
}

// notTask guesses what was meant by a task that is no mapping.
func (l *taskList) notTask(e entry, where string) {
	name := cut(e.name)
	switch e.value.kind {
	case nothing:
		l.r.add(e.at, where+" is empty", fmt.Sprintf("write for example %s: {run: \"echo hello\"}", name))
	case scalar:
		l.r.add(e.spot(), fmt.Sprintf("%s is %s, not a mapping", where, e.value.describe()), fmt.Sprintf("write %s: {run: %s}", name, quote(e.value.text)))
	default:
		l.r.add(e.spot(), fmt.Sprintf("%s is %s, not a mapping", where, e.value.describe()), fmt.Sprintf("write for example %s: {run: [python3, clean.py]}", name))
	}
}

// one checks that a task says exactly once what it does, and that its other
// keys fit that.
func (l *taskList) one(e entry, where string) {
	var kinds []entry
	for _, key := range []string{"run", "http", "type"} {
		if found, ok := e.value.get(key); ok {
			kinds = append(kinds, found)
		}
	}
	if len(kinds) > 1 {
		slices.SortStableFunc(kinds, func(a, b entry) int { return cmp.Compare(a.at.from, b.at.from) })
		names := make([]string, 0, len(kinds))
		for _, k := range kinds {
			names = append(names, fmt.Sprintf("%q", k.name))
		}
		l.r.add(kinds[len(kinds)-1].at, where+" has "+strings.Join(names, " and "), "keep one of them, and give each other one a task of its own")
		return
	}
	if len(kinds) == 0 {
		if taskLevel.lacks(e.value, "run", "http", "type") {
			l.r.add(e.at, where+" says nothing to do", `give it run: "a command", http: {url: …} or type: acme.billing.charge.v1`)
		}
		return
	}
	for _, key := range []string{"env", "inherit_env", "dir"} {
		if found, ok := e.value.get(key); ok && kinds[0].name != "run" {
			l.r.add(found.at, fmt.Sprintf("%q of %s is for commands, and the task has %q", key, where, kinds[0].name), "remove it")
		}
	}
	if found, ok := e.value.get("input"); ok && kinds[0].name != "type" {
		l.r.add(found.at, fmt.Sprintf(`"input" of %s is for a task with a type, and the task has %q`, where, kinds[0].name), "remove it; a command takes arguments and env, a request takes json or body")
	}
}

func (l *taskList) run(e entry, where string, t *Task) {
	const example = `"python3 clean.py", or [python3, clean.py]`
	if e.value.kind == scalar {
		t.Shell, _ = l.filled(e, where, `"python3 clean.py"`)
		return
	}
	if e.value.kind != list {
		l.wrong(e, where, "a command", example)
		return
	}
	if len(e.value.items) == 0 {
		l.r.add(e.spot(), fmt.Sprintf("%q of %s is an empty list", e.name, where), "write for example run: [python3, clean.py]")
		return
	}
	for i, item := range e.value.items {
		switch {
		case item.kind != scalar:
			l.wrongItem(e, entry{value: item}, where, "[python3, clean.py]")
		case i == 0 && strings.TrimSpace(item.text) == "":
			l.r.add(item.at, fmt.Sprintf("%q of %s begins with an empty text, and not with a program", e.name, where), "write for example run: [python3, clean.py]")
		case i == 0 && strings.Contains(item.text, " ") && !strings.ContainsAny(item.text, `/\`):
			l.r.add(item.at, fmt.Sprintf("%q of %s begins with %s, which is no program: a list is one command and its arguments", e.name, where, quote(item.text)),
				"write for example run: [python3, clean.py], or several commands as a text, one per line: run: |")
		case l.storable(item.at, fmt.Sprintf("%q of %s", e.name, where), item.text):
			t.Argv = append(t.Argv, item.text)
		}
	}
}

func (l *taskList) typeName(e entry, where string) string {
	const example = "acme.billing.charge.v1"
	name, ok := l.filled(e, where, example)
	if ok && task.CheckTypeName(name) != nil {
		l.r.add(e.spot(), fmt.Sprintf("%q of %s is %s, which cannot name a task type", e.name, where, quote(name)),
			"write four parts of a-z, 0-9 and _ joined by dots, the last a version, as in "+example)
	}
	return name
}

func (l *taskList) retry(e entry, where string, t *Task) {
	if !l.mapping(e, where, "{max_attempts: 3, base: 1s}") {
		return
	}
	in := "retry of " + where
	l.keys(e.value, in, retryLevel, func(e entry) {
		switch e.name {
		case "max_attempts":
			t.Retry.MaxAttempts = l.whole(e, in, 1, maxAttempts, "3")
		case "base":
			t.Retry.Base = l.duration(e, in, "1s")
		case "max":
			t.Retry.Max = l.duration(e, in, "5m")
		}
	})
	if t.Retry.Max > 0 && t.Retry.Base > t.Retry.Max {
		at, _ := e.value.get("max")
		l.r.add(at.spot(), fmt.Sprintf("max of %s is shorter than its base", in), "the pauses grow from base to max")
	}
	if l.p.Budget.MaxAttemptsPerTask == 0 && retryLevel.lacks(e.value, "max_attempts") {
		l.r.add(e.at, in+" does not say how often", "write for example retry: {max_attempts: 3, base: 1s}")
	}
}

func (l *taskList) concurrency(e entry, where string, t *Task) {
	in := "concurrency of " + where
	switch e.value.kind {
	case scalar:
		t.ConcurrencyKey = l.concurrencyKey(e, where)
	case mapping:
		l.keys(e.value, in, concurrencyLevel, func(e entry) {
			switch e.name {
			case "key":
				t.ConcurrencyKey = l.concurrencyKey(e, in)
			case "limit":
				t.ConcurrencyLimit = l.whole(e, in, 1, maxAttempts, "2")
			}
		})
		if concurrencyLevel.lacks(e.value, "key") {
			l.r.add(e.at, in+" has no key", "write for example concurrency: {key: database, limit: 2}")
		}
	default:
		l.wrong(e, where, "a key, or a key and a limit", "database, or concurrency: {key: database, limit: 2}")
	}
}

func (l *taskList) concurrencyKey(e entry, where string) string {
	key, ok := l.filled(e, where, "database")
	if ok && len(key) > 255 {
		l.r.add(e.spot(), fmt.Sprintf("%q of %s is %d bytes long, and at most 255 are allowed", e.name, where, len(key)), "shorten it")
	}
	return key
}
