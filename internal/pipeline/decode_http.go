package pipeline

import "github.com/goweaver/weaver/builtin"

func (d *decoder) http(f field) *builtin.RequestInput {
	if !d.mapping(f, "{method: POST, url: https://example.com/hook}") {
		return nil
	}
	of := "http of " + f.of
	input := &builtin.RequestInput{Templates: d.scope.open}
	before := len(d.r.all)
	d.keys(f.value, of, httpLevel, func(f field) {
		switch f.name {
		case "method":
			input.Method = d.filledText(f, "POST")
		case "url":
			input.URL = d.filledText(d.finalField(f, atRun), "https://example.com/hook")
			d.warnLiteral(f.value, f.label(), literalRequest)
		case "headers":
			input.Headers = d.texts(f, "{X-Request-Id: 7}", atRun, func(entry) bool { return true })
			d.warnLiterals(f, func(e entry) literal { return literalHeader(e.name, e.value.text) })
		case "headers_env":
			input.HeadersEnv = d.texts(f, "{Authorization: API_TOKEN}", atRead, func(entry) bool { return true })
		case "json":
			input.JSON = d.json(nil, f.value, f.label(), atRun, 0)
			d.warnTree(f.value, f.label(), literalRequest)
		case "body":
			input.Body, _ = d.text(d.finalField(f, atRun), "hello")
			d.warnLiteral(f.value, f.label(), literalRequest)
		case "expect":
			input.Expect = d.statuses(f)
		case "timeout":
			input.Timeout = builtin.Duration(d.duration(f, "30s"))
		case "until":
			input.Until = d.until(f)
		case "max_redirects":
			n := d.whole(f, 0, 100, "10")
			input.MaxRedirects = &n
		}
	})
	body, hasBody := f.value.get("body")
	if _, hasJSON := f.value.get("json"); hasJSON && hasBody {
		d.r.add(body.at, of+` has "json" and "body"`, "keep one of them")
	}
	if unknown := d.lacksParam() || d.scope.each != "" && !d.scope.node; len(d.r.all) == before && !(d.scope.open && unknown) {
		d.validate(f.entry, of, input)
	}
	return input
}

// statuses reads a list of status codes; one alone needs no brackets.
func (d *decoder) statuses(f field) []int {
	items := []*node{f.value}
	if f.value.kind == list {
		items = f.value.items
	}
	var statuses []int
	for _, item := range items {
		statuses = append(statuses, d.whole(f.item(item), 100, 599, "[200, 204]"))
	}
	return statuses
}
