package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// maxEventFrames is the approximate maximum of one write of frames in bytes. A client has
// Config.StreamTimeout to read them.
const maxEventFrames = 16 << 10

// eventsWait bounds one wait for events. Then the client gets its position, if it skipped events
// that do not match.
const eventsWait = 10 * time.Second

// eventsRetry is the pause between reads while the store is unavailable.
const eventsRetry = time.Second

var eventParams = []param{
	query("after", "string", "The id of the last event read: only later events. 0: all kept events. Default: only events from now on."),
	{name: "Last-Event-ID", in: "header", typ: "string", summary: "The id that a browser sends when it reconnects; it overrides after."},
	query("task", "string", "Only events of this task."),
	query("job", "string", "Only events of this job and of its tasks."),
	query("queue", "string", "Only events of tasks of this queue."),
	query("type", "string", "Only events of tasks of this type, or of types with a prefix, as acme.billing.*; several with commas.").repeated(),
	query("name", "string", "Only events of this name, as task.failed, or a prefix, as step.*; several with commas.").repeated(),
}

// events streams events after a cursor. A page is read only after the previous one was written: a
// slow client delays nothing else.
func (c *call) events() error {
	req, err := c.eventsRequest()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	page, err := c.api.client.EventPage(ctx, req) // before the stream begins, so that an error can be a problem
	cancel()
	if err != nil {
		return c.eventsProblem(err)
	}
	return c.stream(func(s *stream) error {
		at := req.After
		for {
			if err := c.sendEvents(s, &page, &at); err != nil {
				return err
			}
			req.After, req.Wait = page.Next, eventsWait
			if page, err = c.nextEvents(s, req); err != nil {
				return err
			}
		}
	})
}

// nextEvents reads a page. While the store is unavailable it sends one error event, keeps the
// stream open and retries: an EventSource that reconnects and gets 503 gives up.
func (c *call) nextEvents(s *stream, req event.FeedRequest) (event.FeedPage, error) {
	for told := false; ; {
		page, err := c.api.client.EventPage(s.ctx, req)
		if s.ctx.Err() != nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBusy) {
			return page, err
		}
		if !told {
			f, err := frame("error", "", c.problem(err, "a stream waits for the store"))
			if err == nil {
				err = s.send(f)
			}
			if err != nil {
				return page, err
			}
			told = true
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(eventsRetry):
		}
	}
}

// eventsRequest parses the request.
func (c *call) eventsRequest() (req event.FeedRequest, err error) {
	req = event.FeedRequest{After: c.get("after"), Queue: c.get("queue"), Types: c.list("type"), Names: c.list("name")}
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		req.After = last
	}
	if req.Task, err = c.idParam("task"); err != nil {
		return req, err
	}
	req.Job, err = c.idParam("job")
	return req, err
}

// eventsProblem names the wrong parameter: a bad cursor, or an unknown event name.
func (c *call) eventsProblem(err error) error {
	if errors.Is(err, weaver.ErrInvalidOption) {
		return badParam("name", "%s", err)
	}
	if !errors.Is(err, store.ErrBadCursor) {
		return err
	}
	p, _ := problemOf(err)
	name := "after"
	if c.r.Header.Get("Last-Event-ID") != "" {
		name = "Last-Event-ID"
	}
	p.Errors = []ProblemError{{Parameter: name, Detail: "it is not the id of an event of this stream"}}
	return p
}

// sendEvents writes a page, and its end if that is after the last event. at is the client's last
// id.
func (c *call) sendEvents(s *stream, page *event.FeedPage, at *string) error {
	var frames []byte
	for i := range page.Events {
		var err error
		if frames, err = c.appendEvent(frames, &page.Events[i]); err != nil {
			return err
		}
		*at = page.Events[i].Cursor
		if len(frames) >= maxEventFrames {
			if err := s.send(frames); err != nil {
				return err
			}
			frames = frames[:0]
		}
	}
	if *at != page.Next && !page.More { // a frame without data only sets the position; clients ignore it as an event
		*at = page.Next
		frames = fmt.Appendf(frames, "id: %s\n\n", page.Next)
	}
	if len(frames) == 0 {
		return nil
	}
	return s.send(frames)
}

// appendEvent appends the frame of an event or gap.
func (c *call) appendEvent(frames []byte, ev *event.FeedEvent) ([]byte, error) {
	if ev.Gap != nil {
		f, err := frame("gap", ev.Cursor, ev.Gap)
		return append(frames, f...), err
	}
	shown, hidden := c.showEvent(ev.Event)
	line := ""
	if ev.Problem != "" {
		line = event.Partial(shown)
	} else {
		line = strings.Join(new(event.Encoder).Lines(shown), "")
	}
	if line == "" {
		return frames, nil // a chunk with a part of a character
	}
	line = strings.TrimSuffix(line, "}")
	if hidden {
		line += `,"payloads_hidden":true`
	}
	if ev.Problem != "" {
		text, err := json.Marshal(ev.Problem)
		if err != nil {
			return frames, err
		}
		line += `,"problem":` + string(text)
	}
	return appendFrame(frames, "message", ev.Cursor, []byte(line+"}")), nil
}
