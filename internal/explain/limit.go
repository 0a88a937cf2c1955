package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// limits describes the limits that keep a due task from starting: their use, and when they open.
func (c Clock) limits(h *store.History) string {
	var said []string
	for i := range h.Limits {
		l := &h.Limits[i]
		s := "the limit " + text.OneLine(l.Name, MaxNote)
		open := l.OpenAt()
		switch {
		case l.Running > 0 && l.InUse >= l.Running:
			s += fmt.Sprintf(", which lets %d run at once (%d run)", l.Running, l.InUse)
		case l.RestUntil.After(c.Now):
			s += ", which a handler asked to rest; it opens " + c.When(l.RestUntil)
		default:
			s += fmt.Sprintf(", which lets %d start in %s", l.Starts, l.Per)
			if l.Burst > 1 {
				s += fmt.Sprintf(" and %d at once", l.Burst)
			}
			s += "; the next one starts " + c.When(open)
		}
		if l.By != "" {
			s += " (set by " + text.OneLine(l.By, MaxNote)
			if l.Reason != "" {
				s += ": " + text.OneLine(l.Reason, MaxNote)
			}
			s += ")"
		}
		said = append(said, s)
	}
	return cmp.Or(strings.Join(said, ", and for "), "a limit")
}
