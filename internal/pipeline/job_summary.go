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

// Does returns the task's work for people: the command, the method and address of
// the request, the question of an approval, or the task type. Shell text may have
// several lines. It omits headers, bodies, environments and the user info of a
// URL.
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

// shellWord quotes an argument with white space or special characters.
func shellWord(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n'\"\\$`;&|<>()*?#") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// userInfo matches the user info of a URL that url.Parse refuses because it holds
// references.
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

// TimeoutOf returns the timeout of one attempt; 0 means no limit in the file.
func (p *Pipeline) TimeoutOf(t *Task) time.Duration { return p.definition(t, "").Timeout }

// RetryOf returns the attempts and pauses of a task, including the pipeline's
// settings. MaxAttempts is 0 if the number of the task's type applies.
func (p *Pipeline) RetryOf(t *Task) Retry {
	d := p.definition(t, "")
	r := Retry{MaxAttempts: d.MaxAttempts, Base: d.Backoff, Max: d.BackoffMax}
	if d.Type != "" && !d.OwnAttempts {
		r.MaxAttempts = 0
	}
	return r
}
