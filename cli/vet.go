package cli

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/internal/vet"
)

// vetCmd is the verb vet.
type vetCmd struct {
	Packages []string `arg:"" optional:"" name:"package" help:"Go packages, with your programs; default ./..."`
}

// Help is shown by vet --help.
func (vetCmd) Help() string {
	return "Reports task types that Go packages define or enqueue, but for which no program among them creates a handler: their tasks " +
		"would wait forever. A type that is passed on in a way that vet does not follow, such as a map, is not reported. Nothing runs; " +
		"the go command compiles the packages.\n\n  weaver vet ./cmd/..."
}

// vetResult is the JSON output of vet.
type vetResult struct {
	OK       bool          `json:"ok"`
	Types    int           `json:"types"`
	Programs int           `json:"programs"`
	Findings []vet.Finding `json:"findings"`
}

// Run implements the verb.
func (c *vetCmd) Run(ctx context.Context, s *session) error {
	patterns := c.Packages
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	r, err := vet.Check(ctx, ".", patterns...)
	if err != nil {
		return badInput("", "%w", err)
	}
	switch {
	case s.json():
		if err := s.writeJSON(vetResult{len(r.Findings) == 0, r.Types, r.Programs, append([]vet.Finding{}, r.Findings...)}); err != nil {
			return err
		}
	case len(r.Findings) == 0:
		where := ""
		if r.Programs > 0 {
			where = " in " + text.Plural(r.Programs, "program")
		}
		s.printf("%s%s: all are handled\n", text.Plural(r.Types, "task type"), where)
	default:
		for _, f := range r.Findings {
			fmt.Fprintln(s.errs, text.Printable(f.String()))
		}
	}
	if len(r.Findings) > 0 {
		return silent(exitUsage)
	}
	return nil
}
