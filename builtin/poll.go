package builtin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
)

// passing is a request error that the next poll may not have.
type passing struct {
	err   error
	after time.Duration // Retry-After of the server; 0: not set
}

// Error implements error.
func (p *passing) Error() string { return p.err.Error() }

// Unwrap returns the original error.
func (p *passing) Unwrap() error { return p.err }

// poller is one attempt of a poll.
type poller struct {
	*requester
	in     RequestInput
	secret map[string]string
	hide   *mask

	said  string // last emitted progress
	polls int
}

// poll sends the request until the answer meets the condition.
func (r *requester) poll(ctx context.Context, in RequestInput, secret map[string]string, hide *mask) (RequestOutput, error) {
	p := &poller{requester: r, in: in, secret: secret, hide: hide}
	if in.Until.every() < sleepFrom {
		return p.inPlace(ctx)
	}
	return p.asleep(ctx)
}

// inPlace polls within one attempt. It records only the time of the first poll
// and, after a timeout, the attempt: a retry after that begins the next round.
func (p *poller) inPlace(ctx context.Context) (RequestOutput, error) {
	for round := 1; ; round++ {
		began, err := weaver.Step(ctx, questionName("poll began", round), func(context.Context) (time.Time, error) { return time.Now(), nil })
		if err != nil {
			return RequestOutput{}, err
		}
		out, last, err := p.untilOver(ctx, began)
		if err != nil || last.Done {
			return out, err
		}
		// Crash after the step: the next attempt attributes the timeout to an earlier
		// attempt, and polls in a new round.
		attempt := weaver.Current(ctx).AttemptNo
		ended, err := weaver.Step(ctx, questionName("poll ended", round), func(context.Context) (int, error) { return attempt, nil })
		if err != nil {
			return RequestOutput{}, err
		}
		if ended == attempt {
			return RequestOutput{}, p.over(last.Seen)
		}
	}
}

// untilOver polls until the condition is met or the time is up.
func (p *poller) untilOver(ctx context.Context, began time.Time) (RequestOutput, polled, error) {
	for {
		out, now, err := p.once(ctx)
		if now.Over = time.Since(began)+now.Pause > p.in.Until.limit(); err != nil || now.Done || now.Over {
			return out, now, err
		}
		timer := time.NewTimer(now.Pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return RequestOutput{}, now, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// asleep polls once per attempt and sleeps in between. Each poll is a step, so
// that a later attempt skips it without a request.
func (p *poller) asleep(ctx context.Context) (RequestOutput, error) {
	var began time.Time
	for n := 1; ; n++ {
		var out *RequestOutput
		p.polls = n - 1 // earlier polls are recorded
		now, err := weaver.Step(ctx, fmt.Sprintf("poll %d", n), func(ctx context.Context) (polled, error) {
			answer, now, err := p.once(ctx)
			if now.Done {
				out = &answer
			}
			if began.IsZero() {
				began = now.At
			}
			now.Over = time.Since(began)+now.Pause > p.in.Until.limit()
			return now, err
		})
		p.said = now.Seen // also by an earlier attempt
		if began.IsZero() {
			began = now.At
		}
		switch {
		case err != nil:
			return RequestOutput{}, err
		case out != nil:
			return *out, nil
		case now.Done: // the attempt that got the answer was lost: request again
			if answer, again, err := p.once(ctx); err != nil || again.Done {
				return answer, err
			}
		case now.Over && now.Attempt == weaver.Current(ctx).AttemptNo:
			return RequestOutput{}, p.over(now.Seen)
		case now.Over: // the task was retried since
			began = time.Time{}
			continue
		}
		if err := weaver.Sleep(ctx, fmt.Sprintf("poll pause %d", n), now.Pause); err != nil {
			return RequestOutput{}, err
		}
	}
}

// polled is the result of one poll.
type polled struct {
	At      time.Time     `json:"at"`
	Attempt int           `json:"attempt"`
	Seen    string        `json:"seen"`
	Done    bool          `json:"done,omitempty"`
	Pause   time.Duration `json:"pause_ns,omitempty"` // until the next poll
	Over    bool          `json:"over,omitempty"`     // the time is up by then
}

// once polls once. It returns the answer if the condition is met.
func (p *poller) once(ctx context.Context) (RequestOutput, polled, error) {
	now := polled{At: time.Now(), Attempt: weaver.Current(ctx).AttemptNo, Pause: p.in.Until.every()}
	out, body, err := p.exchange(ctx, p.in, p.secret, p.hide)
	if again := (*passing)(nil); errors.As(err, &again) {
		now.Seen, now.Pause = p.hide.text(again.Error()), max(now.Pause, again.after)
	} else if err != nil {
		return RequestOutput{}, now, err
	} else {
		now.Done, now.Seen = p.in.Until.met(out.Status, body.kept, body.n == int64(len(body.kept)) && !body.more)
	}
	now.Seen = printable(now.Seen)
	p.polls++
	// Its errors are lease errors: the next step or the end reports them too.
	_ = weaver.Progress(ctx, float64(p.polls), 0, "poll: "+firstRunes(now.Seen, maxLine))
	if now.Seen != p.said {
		_ = weaver.Emit(ctx, "stdout", "poll: "+now.Seen+"\n")
		p.said = now.Seen
	}
	return out, now, nil
}

// over returns the error of a poll whose time is up.
func (p *poller) over(seen string) error {
	return weaver.Permanent(fmt.Errorf("%s %s: it waits for %s, which did not come within %s; the last poll: %s",
		p.in.method(), p.in.shownURL(), p.in.Until.wanted(), text.Setting(p.in.Until.limit()), seen))
}
