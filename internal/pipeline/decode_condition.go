package pipeline

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// conditions are the values of the key if.
var conditions = []string{string(task.OnSuccess), string(task.OnFailed), string(task.OnDone)}

// otherConditions maps the words of other tools to conditions.
var otherConditions = map[string]task.EdgeKind{
	"succeeded": task.OnSuccess, "success()": task.OnSuccess, "on_success": task.OnSuccess, "all_success": task.OnSuccess, "ok": task.OnSuccess, "passed": task.OnSuccess,
	"failure": task.OnFailed, "failure()": task.OnFailed, "on_failure": task.OnFailed, "one_failed": task.OnFailed, "fail": task.OnFailed, "error": task.OnFailed,
	"always": task.OnDone, "always()": task.OnDone, "all_done": task.OnDone, "any": task.OnDone, "finished": task.OnDone, "ended": task.OnDone, "finally": task.OnDone,
}

// condition reads the key if: which outcomes of its needs let the task run. It
// returns "" for success.
func (d *decoder) condition(f field) task.EdgeKind {
	const example = "failed"
	if f.value.kind != scalar {
		d.wrong(f, "one of "+strings.Join(conditions, ", "), example)
		return ""
	}
	text := strings.TrimSpace(f.value.text)
	switch kind := task.EdgeKind(text); kind {
	case task.OnSuccess:
		return ""
	case task.OnFailed, task.OnDone:
		return kind
	}
	lower := strings.ToLower(text)
	meant := string(otherConditions[strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(lower, " ", ""), "${{"), "}}")])
	if meant == "" {
		meant = nearest(lower, conditions)
	}
	hint := "success: all that it needs succeeded (the default); failed: any of it failed; done: all of it has ended"
	if meant != "" {
		hint = "write if: " + meant
	}
	d.r.add(f.spot(), fmt.Sprintf("%s is %s, and must be one of %s", f.label(), quote(f.value.text), strings.Join(conditions, ", ")), hint)
	return ""
}

// checkCondition refuses a condition on a task without needs.
func (d *decoder) checkCondition(e entry, of string) {
	found, ok := e.value.get("if")
	if !ok || len(d.needs[e.name]) > 0 {
		return
	}
	needs, named := e.value.get("needs")
	if named && needs.value.kind != list || !named && !taskLevel.lacks(e.value, "needs") {
		return // reported elsewhere
	}
	d.r.add(found.at, fmt.Sprintf(`"if" of %s says how it takes the ends of its needs, and it needs nothing`, of), "write what it waits for, as in needs: [fetch], or remove it")
}

// yes reads true or false.
func (d *decoder) yes(f field) bool {
	if f.value.kind == scalar && f.value.plain {
		switch plainKind(f.value.text) {
		case plainTrue:
			return true
		case plainFalse:
			return false
		}
	}
	if f.value.kind != scalar {
		d.wrong(f, "true or false", "true")
		return false
	}
	d.r.add(f.spot(), fmt.Sprintf("%s is %s, and must be true or false", f.label(), quote(f.value.text)), fmt.Sprintf("write %s: true", f.name))
	return false
}

// nodeOptions returns the options for the edges from the task's needs and for its
// own failure.
func (d *definition) nodeOptions(job *weaver.Job) []weaver.NodeOption {
	var opts []weaver.NodeOption
	if d.Undoes != "" {
		return append(opts, weaver.Undoes(job.Node(d.Undoes)))
	}
	if len(d.After) > 0 {
		opts = append(opts, weaver.IfDone(job.Nodes(d.After...)...))
	}
	switch d.If {
	case task.OnFailed:
		opts = append(opts, weaver.IfFailed(job.Nodes(d.Needs...)...))
	case task.OnDone:
		opts = append(opts, weaver.IfDone(job.Nodes(d.Needs...)...))
	default:
		opts = append(opts, weaver.Needs(job.Nodes(d.Needs...)...))
	}
	if d.AllowFailure {
		opts = append(opts, weaver.AllowFailure())
	}
	return opts
}

// Conditions returns the condition of each task whose condition is not success.
func (p *Pipeline) Conditions() map[string]task.EdgeKind {
	conditions := make(map[string]task.EdgeKind)
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.If != "" {
			conditions[t.Name] = t.If
		}
	}
	return conditions
}
