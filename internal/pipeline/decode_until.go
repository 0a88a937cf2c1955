package pipeline

import (
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/builtin"
)

const untilExample = "{json: .status, equals: done, every: 5s, timeout: 1h}"

// until reads the end condition of a polling request. The input's Validate reports
// missing and contradictory settings.
func (d *decoder) until(f field) *builtin.Until {
	if !d.mapping(f, untilExample) {
		return nil
	}
	u := &builtin.Until{}
	d.keys(f.value, "until of "+f.of, untilLevel, func(f field) {
		switch f.name {
		case "status":
			u.Status = d.statuses(f)
		case "json":
			u.JSON = d.filledText(f, ".status")
		case "equals":
			u.Equals = d.json(nil, f.value, f.label(), literally, 0)
		case "not":
			u.Not = d.json(nil, f.value, f.label(), literally, 0)
		case "in":
			if f.value.kind != list {
				d.wrong(f, "a list of values", "[done, failed]")
				return
			}
			u.In = []json.RawMessage{}
			for _, item := range f.value.items {
				u.In = append(u.In, d.json(nil, item, f.label(), literally, 0))
			}
		case "every":
			u.Every = builtin.Duration(d.duration(f, "5s"))
		case "timeout":
			u.Timeout = builtin.Duration(d.duration(f, "1h"))
		}
	})
	return u
}

// checkUntil refuses an attempt timeout on a polling request, which has its own.
func (d *decoder) checkUntil(e entry, of string) {
	request, ok := e.value.get("http")
	if !ok {
		return
	}
	_, polls := request.value.get("until")
	if found, ok := e.value.get("timeout"); ok && polls {
		d.r.add(found.at, fmt.Sprintf(`"timeout" of %s is for one attempt, and the task polls`, of), "write it inside, as in until: "+untilExample)
	}
}
