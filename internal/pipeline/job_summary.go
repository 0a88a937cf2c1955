package pipeline

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline/value"
)

// Does says for people what a task does: the command, the method and address of
// the request, the question to a person, or the task type. A command for the shell may have several
// lines. Nothing of headers, bodies, environments and the user info of an
// address is in it.
func (t *Task) Does() string {
	switch {
	case t.Shell != "":
		return strings.TrimSpace(t.Shell)
	case len(t.Argv) > 0:
		words := make([]string, 0, len(t.Argv))
		for _, arg := range t.Argv {
			if t.Templates {
				arg = value.Show(arg)
			}
			words = append(words, shellWord(arg))
		}
		return strings.Join(words, " ")
	case t.HTTP != nil:
		return requestLine(t.HTTP)
	case t.Approve != nil:
		return t.Approve.Message
	}
	return t.Type
}

// shellWord quotes an argument so that its end can be seen.
func shellWord(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n'\"\\$`;&|<>()*?#") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// userInfo is what stands before the host of a URL that cannot be parsed, as it
// has values.
var userInfo = regexp.MustCompile(`(?i)^(https?://)[^/?#]*@`)

func requestLine(in *builtin.RequestInput) string {
	method := strings.ToUpper(in.Method)
	if method == "" && (len(in.JSON) > 0 || in.Body != "") {
		method = "POST"
	}
	address := in.URL
	if in.Templates {
		address = userInfo.ReplaceAllString(value.Show(address), "$1")
	} else if u, err := url.Parse(in.URL); err == nil {
		u.User = nil
		address = u.String()
	}
	return cmp.Or(method, "GET") + " " + address
}

// TimeoutOf is how long an attempt of a task may take; 0: no limit of the file.
func (p *Pipeline) TimeoutOf(t *Task) time.Duration { return p.definition(t, "").Timeout }

// RetryOf says how often a task is attempted, and the pauses between, with
// what it has from the pipeline. MaxAttempts is 0 for a task of a type whose
// own number holds.
func (p *Pipeline) RetryOf(t *Task) Retry {
	d := p.definition(t, "")
	r := Retry{MaxAttempts: d.MaxAttempts, Base: d.Backoff, Max: d.BackoffMax}
	if d.Type != "" && !d.OwnAttempts {
		r.MaxAttempts = 0
	}
	return r
}
