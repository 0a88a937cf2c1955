package events_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task/event"
)

// reader follows all events and is cut off at times.
type reader struct {
	no     int
	client *weaver.Client // nil: it reads over HTTP
	addr   string

	cuts []int        // numbers of events
	seen atomic.Int64 // events
	ids  []string     // the cursors of the events that it saw
	err  error
}

// cutsOf draws the event counts at which a reader is cut off.
func cutsOf(rnd *rand.Rand, n, events int) (cuts []int) {
	for range n {
		cuts = append(cuts, 1+rnd.IntN(events-1))
	}
	slices.Sort(cuts)
	return cuts
}

// run reads to the end.
func (r *reader) run(ctx context.Context) {
	for again := true; again && r.err == nil; {
		if ctx.Err() != nil {
			r.err = fmt.Errorf("it saw %d events: %w", len(r.ids), context.Cause(ctx))
			return
		}
		if r.client != nil {
			again = r.follow(ctx)
		} else {
			again = r.stream(ctx)
		}
	}
}

func (r *reader) after() string {
	if len(r.ids) == 0 {
		return event.FeedOldest
	}
	return r.ids[len(r.ids)-1]
}

// saw records an event; it reports whether the reader continues without a cut.
func (r *reader) saw(cursor string, isLast bool) (on bool) {
	r.ids = append(r.ids, cursor)
	r.seen.Store(int64(len(r.ids)))
	if isLast {
		return false
	}
	cut := false
	for len(r.cuts) > 0 && r.cuts[0] <= len(r.ids) {
		r.cuts, cut = r.cuts[1:], true
	}
	return !cut
}

// follow reads by Client.Events until the reader is cut off; again reports whether there is more to read.
func (r *reader) follow(ctx context.Context) (again bool) {
	for ev, err := range r.client.Events(ctx, event.FeedRequest{After: r.after()}) {
		switch {
		case err != nil:
			r.err = err
			return false
		case ev.Gap != nil:
			r.err = fmt.Errorf("there is a gap: %+v", ev.Gap)
			return false
		}
		isLast := ev.Event.Head().TaskType == end.Name()
		if !r.saw(ev.Cursor, isLast) {
			return !isLast
		}
	}
	return true
}

// stream is follow over HTTP. Only a problem response is an error; any other end of the stream is the death of the
// server.
func (r *reader) stream(ctx context.Context) (again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.addr+"/v1/events?after="+event.FeedOldest, http.NoBody)
	if err != nil {
		r.err = err
		return false
	}
	if len(r.ids) > 0 {
		req.Header.Set("Last-Event-ID", r.after())
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil { // the server is dead
		wait(ctx, 20*time.Millisecond)
		return true
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		r.err = fmt.Errorf("%s: %s", res.Status, body)
		return false
	}
	scan := bufio.NewScanner(res.Body)
	scan.Buffer(nil, 1<<20)
	name, id, data := "", "", ""
	for scan.Scan() {
		field, value, _ := strings.Cut(scan.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			data = value
		case "": // the end of the frame
			switch {
			case name == "message":
				isLast := strings.Contains(data, `"task_type":"`+end.Name()+`"`)
				if !r.saw(id, isLast) {
					return !isLast
				}
			case name != "":
				r.err = fmt.Errorf("the stream says %s %s", name, data)
				return false
			}
			name, id, data = "", "", ""
		}
	}
	return true
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
