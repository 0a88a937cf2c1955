package cli

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// printExplanation prints an explanation for people.
func (s *session) printExplanation(x *explanation) {
	title := fmt.Sprintf("Task %s", x.ID)
	if x.Kind == "job" {
		title = fmt.Sprintf("Job %s", x.ID)
	}
	if x.Name != "" {
		title += fmt.Sprintf(" %q", oneLine(x.Name, maxNote))
	}
	if x.Type != "" {
		title += ", of type " + x.Type
	}
	if !x.JobID.IsZero() {
		title += fmt.Sprintf(", in job %s", x.JobID)
	}
	s.printf("%s\n\n%s\n", s.paint.Paint(text.Bold, title), s.paint.Paint(text.StateColor(x.State), x.Summary))
	s.printCauses(x.Because, "  ")
	for _, n := range x.Notes {
		s.printf("%s\n", n)
	}
	s.printPast(x.Past)
	if len(x.Actions) > 0 {
		s.printf("\n%s\n", s.paint.Paint(text.Bold, "What you can do"))
		for _, a := range x.Actions {
			s.printf("  %s\n      %s\n", a.Command, a.Effect)
		}
	}
}

func (s *session) printCauses(causes []cause, margin string) {
	for _, c := range causes {
		s.printf("%s%s\n", margin, s.paint.Paint(text.StateColor(c.State), c.Sentence))
		s.printCauses(c.Because, margin+"  ")
	}
}

// maxPast is how many happenings text output tells.
const maxPast = 10

func (s *session) printPast(past []happening) {
	if len(past) == 0 {
		return
	}
	s.printf("\n%s\n", s.paint.Paint(text.Bold, "What happened"))
	if early := len(past) - maxPast; early > 0 {
		s.printf("  %s, which -o json tells.\n", summarize(past[:early]))
		past = past[early:]
	}
	for _, h := range past {
		s.printf("  %s\n", h.Sentence)
	}
}

// summarize counts what came before the happenings that are told.
func summarize(past []happening) string {
	counts := make(map[task.Outcome]int)
	var order []task.Outcome
	verbs := 0
	for _, h := range past {
		if h.Attempt == nil {
			verbs++
			continue
		}
		if counts[h.Attempt.Outcome]++; counts[h.Attempt.Outcome] == 1 {
			order = append(order, h.Attempt.Outcome)
		}
	}
	var parts []string
	for _, o := range order {
		parts = append(parts, fmt.Sprintf("%d %s", counts[o], o))
	}
	line := fmt.Sprintf("Before that: %s (%s)", text.Plural(len(past)-verbs, "attempt"), strings.Join(parts, ", "))
	if verbs > 0 {
		line += fmt.Sprintf(" and %s of operators", text.Plural(verbs, "verb"))
	}
	return line
}
