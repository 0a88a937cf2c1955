package cli

import (
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
)

// printExplanation prints an explanation for people.
func (s *session) printExplanation(x *explain.Explanation) {
	s.printf("%s\n\n", s.paint.Paint(text.Bold, x.Title()))
	if x.Root != "" {
		s.printf("%s\n", s.paint.Paint(text.StateColor(x.State), x.Root))
	}
	s.printf("%s\n", s.paint.Paint(text.StateColor(x.State), x.Summary))
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

func (s *session) printCauses(causes []explain.Cause, margin string) {
	for _, c := range causes {
		s.printf("%s%s\n", margin, s.paint.Paint(text.StateColor(c.State), c.Sentence))
		s.printCauses(c.Because, margin+"  ")
	}
}

// maxPast is the maximum number of happenings in text output.
const maxPast = 10

func (s *session) printPast(past []explain.Happening) {
	if len(past) == 0 {
		return
	}
	s.printf("\n%s\n", s.paint.Paint(text.Bold, "What happened"))
	if early := len(past) - maxPast; early > 0 {
		s.printf("  %s, which -o json lists.\n", explain.Earlier(past[:early]))
		past = past[early:]
	}
	for _, h := range past {
		s.printf("  %s\n", h.Sentence)
	}
}
