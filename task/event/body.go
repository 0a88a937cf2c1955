package event

import "fmt"

// MaxBody is the maximum size of a stored event in bytes. A longer log line or stream chunk is cut and marked as cut.
const MaxBody = 64 << 10

// Body encodes the fields of an event outside its header as stores keep them: a JSON object. The argument builds the
// event for a header; handler code in the event's values runs here. The output of a completed step is omitted,
// because the step stores it.
func Body(of func(Header) Event) (typ string, body []byte, err error) {
	ev := Plain(of(Header{}))
	if done, ok := ev.(StepCompleted); ok {
		done.Output = nil
		ev = done
	}
	if body, err = marshal(ev); err == nil && len(body) > MaxBody {
		body, err = marshal(cut(ev, len(body)))
	}
	return ev.Type(), body, err
}

// cut shortens the long fields of an event. A byte of text takes up to six bytes in JSON.
func cut(ev Event, size int) Event {
	note := fmt.Sprintf("… (cut: it has %d bytes, of which %d are kept at most)", size, MaxBody)
	shorten := func(s string) string {
		s = s[:min(len(s), MaxBody/8)]
		return s[:len(s)-incomplete(s)] + note
	}
	switch ev := ev.(type) {
	case LogWritten:
		ev.Message, ev.Data = shorten(ev.Message), nil
		return ev
	case StreamChunk:
		text, ok := ev.Data.(string)
		if !ok {
			raw, _ := marshal(ev.Data)
			text = string(raw)
		}
		ev.Data = shorten(text)
		return ev
	case StepFailed:
		ev.Error.Message, ev.Error.Stack = shorten(ev.Error.Message), ""
		return ev
	case Progress:
		ev.Message = shorten(ev.Message)
		return ev
	}
	return ev
}

// Decode decodes the result of Body. Stores keep the types step.started, step.completed, step.failed, progress,
// stream.chunk and log.written.
func Decode(typ string, h Header, body []byte) (Event, error) {
	for i := range kinds {
		if k := &kinds[i]; k.decode != nil && k.zero.Type() == typ {
			ev, err := k.decode(h, body)
			if err != nil {
				return nil, fmt.Errorf("event %d of task %s, %s: %w", h.Sequence, h.TaskID, typ, err)
			}
			return ev, nil
		}
	}
	return nil, fmt.Errorf("event %d of task %s: the type %q is not known: a newer program wrote it", h.Sequence, h.TaskID, typ)
}
