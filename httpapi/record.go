package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// taskEvents writes a page of a task's events, oldest first. A page ends with a numbered event,
// after which the next page begins: the unnumbered steps of an attempt belong to the page with its
// end.
func (c *call) taskEvents() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	limit, err := c.limit(ops.MaxBulk)
	if err != nil {
		return err
	}
	f := weaver.EventFilter{TaskID: id, NoWait: true}
	if after := c.get("after"); after != "" {
		if f.AfterSequence, err = strconv.ParseInt(after, 10, 64); err != nil || f.AfterSequence < 1 {
			return fmt.Errorf("%w: %.40q: not the number of an event", store.ErrBadCursor, after)
		}
	}
	if limit == 0 {
		limit = defaultEvents
	}
	ctx, cancel := c.context()
	defer cancel()
	page := Page[json.RawMessage]{Items: []json.RawMessage{}}
	var enc event.Encoder
	last := int64(0)
	for ev, err := range c.api.client.Subscribe(ctx, f) {
		switch {
		case err != nil:
			return err
		case last > 0 && len(page.Items) >= limit: // there are more
			page.Next = strconv.FormatInt(last, 10)
		default:
			shown, hidden := c.showEvent(ev)
			for _, line := range enc.Lines(shown) {
				if hidden {
					line = strings.TrimSuffix(line, "}") + `,"payloads_hidden":true}`
				}
				page.Items = append(page.Items, json.RawMessage(line))
			}
			last = ev.Head().Sequence
			continue
		}
		break
	}
	return c.write(http.StatusOK, page)
}

const defaultEvents = 100

// logs writes a task's output: that of one attempt of a command, or the lines and chunks of a task
// whose engine stores them.
func (c *call) logs() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	attempt, err := c.number("attempt", 1, math.MaxInt32)
	if err != nil {
		return err
	}
	tail, err := c.number("tail", 1, maxTail)
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	t, err := taskRow(ctx, c.api.client, id)
	cancel()
	if err != nil {
		return err
	}
	out, err := c.download("text/plain; charset=utf-8")
	if err != nil {
		return err
	}
	defer out.close()
	var w io.Writer = out
	var end *tailOf
	if tail > 0 {
		end = &tailOf{most: tail}
		w = end
	}
	no := attempt
	if no == 0 {
		no = t.AttemptNo
	}
	found := false
	if open := c.api.cfg.CommandLogs; open != nil && no > 0 && no <= t.AttemptNo {
		switch r, err := open(&t, no); {
		case err == nil:
			found = true
			if err := errors.Join(copyUntil(out.ctx, w, r), r.Close()); err != nil {
				return out.broken(err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if !found {
		if found, err = c.storedLines(out.ctx, w, t.ID, attempt); err != nil {
			return out.broken(err)
		}
	}
	if !found {
		return notFound.of("There is no output of the task here: it wrote nothing, its engine does not store lines (weaver.PersistLogs), or its command ran where another folder keeps them.")
	}
	if end != nil {
		_, err = out.Write(end.bytes())
	} else {
		_, err = out.Write(nil)
	}
	if err != nil {
		return out.broken(err)
	}
	return nil
}

const maxTail = 1 << 20

// storedLines writes the lines that a task's engine stored, of all attempts for 0.
func (c *call) storedLines(ctx context.Context, w io.Writer, id weaver.TaskID, attempt int) (found bool, err error) {
	for ev, err := range c.api.client.Subscribe(ctx, weaver.EventFilter{TaskID: id, NoWait: true}) {
		if err != nil {
			return found, err
		}
		if attempt > 0 && ev.Head().AttemptNo != attempt {
			continue
		}
		if line, ok := text.LogLine(ev, time.UTC); ok {
			found = true
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// number parses an integer query parameter; 0 if it is missing.
func (c *call) number(name string, least, most int) (int, error) {
	text := c.get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, badParam(name, "%q: want a number from %d to %d", text, least, most)
	}
	return n, nil
}
