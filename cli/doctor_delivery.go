package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// deliveryCheckup is doctor's JSON output about the hints of due tasks.
type deliveryCheckup struct {
	Answers *bool  `json:"answers,omitempty"` // whether the transport of --delivery does; none without --delivery
	Error   string `json:"error,omitempty"`   // why it does not

	Refused      int    `json:"refused"` // tasks whose hint the transport refused for good
	RefusedError string `json:"refused_error,omitempty"`
	Failed       int    `json:"failed"` // tasks whose hint it did not take at the last try
	FailedError  string `json:"failed_error,omitempty"`
}

// noteHint counts a hint that the transport did not take.
func (f *checkup) noteHint(d *store.DispatchRow) {
	if d.LastError == "" {
		return
	}
	if f.Delivery == nil {
		f.Delivery = new(deliveryCheckup)
	}
	if h := f.Delivery; d.Refused() {
		h.Refused++
		h.RefusedError = fmt.Sprintf("queue %q, type %s: %s", d.Queue, d.Type, strings.TrimPrefix(d.LastError, store.HintRefused))
	} else {
		h.Failed++
		h.FailedError = d.LastError
	}
}

// examineDelivery asks the transport, and warns of hints that it did not take. The tasks start without, so this is no
// violation.
func (f *checkup) examineDelivery(ctx context.Context, s *session) {
	warn := func(key, format string, args ...any) {
		f.Warnings = append(f.Warnings, warning{key, fmt.Sprintf(format, args...)})
	}
	if s.hints != nil {
		if f.Delivery == nil {
			f.Delivery = new(deliveryCheckup)
		}
		err := s.hints.check(ctx, checkLimit)
		answers := err == nil
		if f.Delivery.Answers = &answers; !answers {
			f.Delivery.Error = err.Error()
			warn("delivery", "the transport of --delivery cannot be used, and idle workers start tasks later: %s", f.Delivery.Error)
		}
	}
	h := f.Delivery
	if h == nil {
		return
	}
	if h.Refused > 0 {
		warn("refused hints", "the transport refuses the hints of %s, which idle workers start later; one of them: %s",
			text.Plural(h.Refused, "task"), text.OneLine(h.RefusedError, explain.MaxMessage))
	}
	if h.Failed > 0 {
		warn("failed hints", "the transport did not take the hints of %s at the last try: %s", text.Plural(h.Failed, "task"), text.OneLine(h.FailedError, explain.MaxMessage))
	}
}

func (s *session) printDelivery(h *deliveryCheckup) {
	if h != nil && h.Answers != nil && *h.Answers {
		s.printf("The transport of --delivery answers.\n")
	}
}
