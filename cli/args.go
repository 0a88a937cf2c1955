package cli

import (
	"fmt"
	"os"
	"os/user"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/typo"
)

// auditFlags record the actor and the reason of an action.
type auditFlags struct {
	Reason string `placeholder:"TEXT" help:"Reason, kept in the audit."`
	By     string `placeholder:"NAME" help:"Actor, kept in the audit; default: your user name."`
}

// who returns the actor: --by, or the user of the operating system.
func (a auditFlags) who() string {
	if a.By != "" {
		return a.By
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER") // a user without an entry in the user database, as in some containers
}

func (a auditFlags) options() []weaver.OperateOption {
	return []weaver.OperateOption{weaver.By(a.who()), weaver.Reason(a.Reason)}
}

// checkFilters refuses an empty value for a flag that takes a list or has the tag `filter`: --type "$TYPE" with an
// unset TYPE must not select the tasks of every type.
func checkFilters(c *kong.Context) error {
	for _, p := range c.Path {
		f := p.Flag
		if f == nil || f.Target.Kind() != reflect.Slice && !f.Tag.Has("filter") {
			continue
		}
		if f.Target.Len() == 0 {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", f.Name)
		}
	}
	return nil
}

// pageFlags select a page of a list.
type pageFlags struct {
	Limit int    `default:"50" placeholder:"N" help:"Maximum number of rows, up to 1000; default 50."`
	After string `placeholder:"CURSOR" help:"Cursor that the previous page printed."`
}

func (p pageFlags) check(limit int) error {
	if p.Limit < 1 || p.Limit > limit {
		return badInput("", "--limit %d: want 1 to %d", p.Limit, limit)
	}
	return nil
}

// parseLabels parses KEY=VALUE pairs.
func parseLabels(args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(args))
	for _, a := range args {
		k, v, found := strings.Cut(a, "=")
		if !found || k == "" {
			return nil, badInput("", "--label %q: want KEY=VALUE, for example --label team=pay", a)
		}
		if old, twice := labels[k]; twice && old != v {
			return nil, badInput("", "--label %s is given twice, as %q and %q: no task has both", k, old, v)
		}
		labels[k] = v
	}
	return labels, nil
}

// otherWords maps state names of other engines to those of Weaver.
var otherWords = map[string]string{
	"canceled": "cancelled", "aborted": "cancelled",
	"complete": "succeeded", "completed": "succeeded", "done": "succeeded", "success": "succeeded", "successful": "succeeded",
	"dead": "failed", "discarded": "failed", "error": "failed", "failure": "failed",
	"available": "ready", "queued": "ready", "due": "ready",
	"active": "running", "leased": "running", "started": "running",
	"scheduled": "pending", "waiting": "pending", "retrying": "pending", "retryable": "pending", "delayed": "pending",
}

// parseStates parses state names and suggests the nearest for an unknown name.
func parseStates[S ~string](args []string, known []S) ([]S, error) {
	var states []S
	for _, a := range args {
		s := S(strings.ToLower(strings.TrimSpace(a)))
		if !slices.Contains(known, s) {
			return nil, badInput("", "--state %q: unknown state%s; the states are %s", a, didYouMean(string(s), known), join(known))
		}
		states = append(states, s)
	}
	return states, nil
}

func didYouMean[S ~string](word string, known []S) string {
	if other, ok := otherWords[word]; ok && slices.Contains(known, S(other)) {
		return fmt.Sprintf(" (did you mean %s?)", other)
	}
	const limit = 2 // with more typos it is a different word
	best, bestDistance := S(""), limit+1
	for _, k := range known {
		d := typo.Distance(word, string(k), limit)
		if len(word) > 1 && strings.HasPrefix(string(k), word) {
			d = 0
		}
		if d < bestDistance && d < len(word) { // with all letters changed it is a different word
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

func join[S ~string](words []S) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = string(w)
	}
	return strings.Join(parts, ", ")
}
