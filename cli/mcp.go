package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/mcpserver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// mcpCmd is the verb mcp.
type mcpCmd struct {
	AllowWrites  bool `help:"Also offer the tools that change something."`
	ShowPayloads bool `help:"Also show values and logs, masked as their tasks say."`
	addressFlags
}

// Help is shown by mcp --help.
func (mcpCmd) Help() string {
	return "Speaks the Model Context Protocol on the standard input and output, for a client that starts it, and ends with its input. The " +
		"tools list and show tasks, explain their state and print their logs. By default they only read, and hide inputs, outputs, " +
		"values of steps, and logs. Changes are in the audit with the actor mcp."
}

// Run implements the verb.
func (c *mcpCmd) Run(ctx context.Context, s *session) error {
	if err := c.checkAddresses(); err != nil {
		return err
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		srv, err := mcpserver.New(mcpserver.Config{
			Version:      s.app.Version,
			Client:       client,
			Find:         s.findFor(client),
			Why:          s.whyText,
			Logs:         s.logsText,
			Types:        s.typeNames,
			Draft:        s.mcpDraft,
			Orders:       s.mcpOrders(client, &c.addressFlags),
			AllowWrites:  c.AllowWrites,
			ShowPayloads: c.ShowPayloads,
			Logger:       warnings(s.errs),
		})
		if err != nil {
			return err
		}
		err = mcpserver.Serve(ctx, srv, s.stdin, s.live)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil // the client is gone, or the user interrupted
		}
		if err != nil {
			return fmt.Errorf("the session with the client ended (`weaver mcp` is started by a program that writes MCP to it, one JSON-RPC message a line): %w", err)
		}
		return nil
	})
}

// maxAnswer is the maximum output of a verb in bytes; only its end is kept.
const maxAnswer = 1 << 20

// tailWriter keeps the end of the written text.
type tailWriter struct {
	kept bytes.Buffer
	gone int64 // number of dropped bytes before it
}

// Write implements io.Writer.
func (w *tailWriter) Write(p []byte) (int, error) {
	w.kept.Write(p)
	if more := w.kept.Len() - maxAnswer; more > 0 {
		w.kept.Next(more)
		w.gone += int64(more)
	}
	return len(p), nil
}

// inner returns a session for a verb whose text becomes the answer of a tool.
func (s *session) inner() (*session, *tailWriter) {
	in, live := *s, new(tailWriter)
	in.out, in.live, in.errs, in.stdin = new(bytes.Buffer), live, io.Discard, strings.NewReader("")
	in.flags.Output, in.paint, in.terminal, in.width = "text", text.Painter{}, false, 0
	in.clock = explain.Clock{Now: time.Now(), Zone: s.clock.Zone, Gone: make(map[task.ID][]string)}
	return &in, live
}

// advised adds the advice of a verb to its error.
func (s *session) advised(err error) error {
	if err == nil || errors.Is(err, errSilent) {
		return nil
	}
	usage := exitCode(err) == exitUsage
	if what := advice(s.command, err); what != "" {
		err = fmt.Errorf("%w. %s", err, what)
	}
	if usage { // an error about the request
		return mcpserver.Said(err)
	}
	return err
}

func (s *session) whyText(ctx context.Context, id task.ID) (string, error) {
	in, _ := s.inner()
	err := (&whyCmd{ID: id.String(), Depth: 10}).Run(ctx, in)
	return in.out.String(), s.advised(err)
}

func (s *session) logsText(ctx context.Context, id task.ID, attempt int) (end string, before int64, err error) {
	in, live := s.inner()
	err = (&logsCmd{What: id.String(), Attempt: attempt}).Run(ctx, in)
	return text.Printable(in.out.String() + live.kept.String()), live.gone, s.advised(err)
}

// findFor resolves arguments of tools like those of the command line.
func (s *session) findFor(client *weaver.Client) func(context.Context, mcpserver.Kind, string) (task.ID, error) {
	return func(ctx context.Context, what mcpserver.Kind, name string) (task.ID, error) {
		in, _ := s.inner()
		want := map[mcpserver.Kind]target{mcpserver.Task: wantTask, mcpserver.Job: wantJob, mcpserver.Either: wantAny}[what]
		id, err := in.resolveOne(ctx, client, want, name)
		return id, s.advised(err)
	}
}

// typeNames returns the types that can be enqueued: those that this program knows and those that workers of the store
// handle.
func (s *session) typeNames(ctx context.Context) ([]string, error) {
	of, err := s.announced(ctx)
	if err != nil {
		return nil, s.advised(err)
	}
	all := make(map[string]bool)
	maps.Copy(all, of.handled)
	for name := range of.described {
		all[name] = true
	}
	for name := range s.types() {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all)), nil
}

func (s *session) mcpDraft(ctx context.Context, typeName string, input json.RawMessage, opts ...weaver.EnqueueOption) (weaver.Draft, error) {
	if err := task.CheckTypeName(typeName); err != nil {
		return weaver.Draft{}, mcpserver.Said(fmt.Errorf("%w: list_types lists those that there are", err))
	}
	draft, err := (&submitCmd{What: typeName}).draft(ctx, s, input, opts)
	return draft, s.advised(err)
}
