// Package webtasks has task types for the tests of the dashboard, on a server and in a tab.
package webtasks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/goweaver/weaver"
)

// Work is the input of a task: the action of its handler, and a text.
type Work struct {
	Do   string `json:"do"`
	Text string `json:"text,omitempty"`
}

var (
	// Mail is tried twice.
	Mail = weaver.Define[Work, string]("acme.mail.send.v1", weaver.MaxAttempts(2), weaver.Backoff(time.Millisecond))
	// Report is tried once.
	Report = weaver.Define[Work, string]("acme.report.build.v1", weaver.NoRetry())
)

// Handle fails, blocks or succeeds.
func Handle(ctx context.Context, in Work) (string, error) {
	if in.Text != "" {
		if err := weaver.Do(ctx, "note", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		slog.New(slog.NewTextHandler(io.Discard, nil)).InfoContext(ctx, in.Text)
	}
	switch in.Do {
	case "fail":
		return "", errors.New("the server said 550: " + in.Text)
	case "block":
		return "", weaver.Blocked("which address? " + in.Text)
	}
	return "sent " + in.Text, nil
}
