package pipeline

import (
	"fmt"

	"github.com/goweaver/weaver/builtin"
)

func (l *taskList) http(e entry, where string) *builtin.RequestInput {
	if !l.mapping(e, where, "{method: POST, url: https://example.com/hook}") {
		return nil
	}
	in := "http of " + where
	input := &builtin.RequestInput{}
	before := len(l.r.all)
	l.keys(e.value, in, httpLevel, func(e entry) {
		switch e.name {
		case "method":
			input.Method, _ = l.filled(e, in, "POST")
		case "url":
			input.URL, _ = l.filled(e, in, "https://example.com/hook")
		case "headers":
			input.Headers = l.texts(e, in, "{X-Request-Id: 7}", func(entry) bool { return true })
		case "json":
			input.JSON = l.json(nil, e.value, fmt.Sprintf("%q of %s", e.name, in), 0)
		case "body":
			input.Body, _ = l.text(e, in, "hello")
		case "expect":
			input.Expect = l.statuses(e, in)
		case "timeout":
			input.Timeout = builtin.Duration(l.duration(e, in, "30s"))
		case "max_redirects":
			n := l.whole(e, in, 0, 100, "10")
			input.MaxRedirects = &n
		}
	})
	if _, both := e.value.get("json"); both {
		if body, both := e.value.get("body"); both {
			l.r.add(body.at, in+` has "json" and "body"`, "keep one of them")
		}
	}
	if len(l.r.all) == before {
		l.validate(e, in, input)
	}
	return input
}

func (l *taskList) statuses(e entry, where string) []int {
	items := []*node{e.value}
	if e.value.kind == list {
		items = e.value.items
	}
	var statuses []int
	for _, item := range items {
		if n := l.whole(entry{name: e.name, at: item.at, value: item}, where, 100, 599, "[200, 204]"); n > 0 {
			statuses = append(statuses, n)
		}
	}
	return statuses
}
