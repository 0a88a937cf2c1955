package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver"
)

// model replaces a language model: it returns scripted lines.
type model struct{ pace time.Duration }

// price of a token, in micro-units.
const price = 100

// script maps the beginning of a prompt to the model's answer. It gets one number of the plan wrong, and right with
// the hint of a repair.
var script = []struct{ prompt, hint, said string }{
	{"plan: ", "", `[{"name":"rivers","words":5}, {"name":"rocks","words":"five"}]`},
	{"research: rivers", "", "Rivers carry salt into it."},
	{"research: rocks", "", "Rain washes salt from rocks."},
	{`repair: {"name":"rocks"`, "path: words", `{"name":"rocks", "words":5}`},
}

// ask returns a line token by token and spends the cost of the tokens. emit may be nil.
func (m model) ask(ctx context.Context, emit func(any) error, prompt string) (string, error) {
	for _, line := range script {
		if !strings.HasPrefix(prompt, line.prompt) || !strings.Contains(prompt, line.hint) {
			continue
		}
		for _, token := range strings.Fields(line.said) {
			select {
			case <-time.After(m.pace):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
			err := weaver.Spend(ctx, price)
			if emit != nil {
				err = errors.Join(err, emit(token))
			}
			if err != nil {
				return "", err
			}
		}
		return line.said, nil
	}
	return "", weaver.Permanent(fmt.Errorf("the model has no words for %q", prompt))
}
