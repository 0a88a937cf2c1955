package value

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/goweaver/weaver/internal/pipeline/template"
)

// beforeValues matches the beginning of a URL up to its first reference: values
// may not choose the host.
var beforeValues = regexp.MustCompile(`(?i)^https?://[^/?#]+[/?#]`)

// checkURL returns the problem with the place of references in a URL, or nil. A
// single reference may be the whole URL.
func checkURL(text string) *Problem {
	parsed, err := template.Parse(text)
	if err != nil || len(parsed.Paths()) == 0 || len(parsed) == 1 {
		return nil
	}
	if parsed[0].Path == nil && beforeValues.MatchString(parsed[0].Literal) {
		return nil
	}
	return &Problem{parsed.Paths()[0].String() + " stands where it would choose the host", "write values behind the host, as in https://example.com/{{.tasks.fetch.stdout}}, or nothing but one value that is the whole URL"}
}

// url fills a URL. It escapes a value as a path segment or as a query value.
func (f filler) url(parsed template.Template) (string, error) {
	if len(parsed) == 1 && parsed[0].Path != nil {
		v, known, err := f.get(parsed[0].Path)
		if err != nil || !known {
			return parsed[0].Path.String(), err
		}
		return f.literal(v.text), nil
	}
	var made, plainURL, sampleURL strings.Builder // the last two compare their segments
	var last template.Path
	escape := url.PathEscape
	for _, part := range parsed {
		text, known := part.Literal, part.Path == nil
		if known {
			if strings.ContainsAny(text, "?#") {
				escape = url.QueryEscape
			}
			sampleURL.WriteString(text)
		} else {
			v, ok, err := f.get(part.Path)
			if err != nil {
				return "", err
			}
			text, known, last = escape(v.text), ok, part.Path
			sampleURL.WriteByte('x')
		}
		if known {
			made.WriteString(f.literal(text))
			plainURL.WriteString(text)
		} else {
			made.WriteString(part.Path.String())
			plainURL.WriteByte('x')
		}
	}
	if why := otherSegments(plainURL.String(), sampleURL.String()); why != "" {
		return "", &Error{last, why}
	}
	return made.String(), nil
}

// otherSegments returns a problem if values give the URL an empty path segment,
// "." or "..": it would name another folder than its author wrote.
func otherSegments(filled, sample string) string {
	segments := func(raw string) []string {
		path, _, _ := strings.Cut(raw, "?")
		path, _, _ = strings.Cut(path, "#")
		return strings.Split(path, "/")
	}
	written := segments(sample)
	for i, s := range segments(filled) {
		if i >= len(written) || s == written[i] {
			continue
		}
		switch s {
		case "":
			return "it is empty, and would leave a segment of the URL's path empty"
		case ".", "..":
			return `it makes a segment of the URL's path "` + s + `", which names another folder`
		}
	}
	return ""
}
