package pipeline

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/builtin"
)

const approveExample = `{message: "Deploy to production?", timeout: 48h}`

// works are the keys that define the work of a task; a task has exactly one.
var works = []string{"run", "http", "approve", "type"}

// approve reads the question to a person: a text, or a message and a timeout.
func (d *decoder) approve(f field) *builtin.ApproveInput {
	in := &builtin.ApproveInput{}
	before := len(d.r.all)
	switch f.value.kind {
	case scalar:
		in.Message = d.filledText(d.finalField(f, atRead), `"Deploy to production?"`)
	case mapping:
		of := "approve of " + f.of
		d.keys(f.value, of, approveLevel, func(f field) {
			switch f.name {
			case "message":
				in.Message = d.filledText(d.finalField(f, atRead), `"Deploy to production?"`)
			case "timeout":
				in.Timeout = builtin.Duration(d.duration(f, "48h"))
			}
		})
		if approveLevel.lacks(f.value, "message") {
			d.r.add(f.at, of+" has no message: nobody would know what is asked", f.example(approveExample))
		}
	default:
		d.wrong(f, "a text, or a message and a timeout", approveExample)
	}
	if len(d.r.all) == before {
		d.validate(f.entry, f.label(), in)
	}
	return in
}

// checkApprove refuses keys that have no effect on a task that waits for a person.
func (d *decoder) checkApprove(e entry, of string) {
	for _, key := range []string{"timeout", "retry", "concurrency"} {
		found, ok := e.value.get(key)
		if !ok {
			continue
		}
		hint := "remove it"
		if key == "timeout" {
			hint = "write it inside, as in approve: " + approveExample
		}
		d.r.add(found.at, fmt.Sprintf(`%q of %s is for attempts, and the task has "approve", which waits for a person`, key, of), hint)
	}
}

// worksOf returns the entries whose keys are in works, in the order of the file.
func worksOf(n *node) []entry {
	var found []entry
	for _, e := range n.entries {
		if slices.Contains(works, e.name) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b entry) int { return a.at.from - b.at.from })
	return found
}
