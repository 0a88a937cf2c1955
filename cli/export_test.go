package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/task"
)

// Reader is the part of a client that explanations need.
type Reader = reader

// Why explains a task or job of r at an instant, as text and as the JSON value.
func Why(ctx context.Context, r Reader, now time.Time, depth int, id task.ID) (string, any, error) {
	var out bytes.Buffer
	s := newSession(App{}.withDefaults(), globals{}, streams{}, &out, now)
	s.clock.Zone = time.UTC
	x, err := s.explains(r).Explain(ctx, explain.Explainer{Clock: s.clock, Command: s.command, Depth: depth}, id)
	if err != nil {
		return "", nil, err
	}
	s.printExplanation(x)
	return out.String(), x, nil
}

// RunOnTerminal is Run with a terminal; it returns the text on the screen.
func RunOnTerminal(ctx context.Context, args ...string) (string, error) {
	screen, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, like a terminal
	if err != nil {
		return "", err
	}
	defer func() { _ = screen.Close() }()
	var out bytes.Buffer
	err = run(ctx, App{}.withDefaults(), args, streams{strings.NewReader(""), screen, io.Discard}, &out)
	return out.String(), err
}

// Command formats a command line for a program called with args, a store and a namespace.
func Command(store, namespace string, args ...string) string {
	return newSession(App{}.withDefaults(), globals{Store: store, Namespace: namespace}, streams{}, nil, time.Now()).command(args...)
}

// Report prints an error as the program does and returns its exit code.
func Report(w io.Writer, err error) int { return report(w, App{}.withDefaults(), err) }

// Table prints rows under a header, with the first cell of each row in red.
func Table(colours bool, head []string, rows ...[]string) string {
	t := newTable(head...)
	for _, row := range rows {
		cells := []cell{painted(row[0], text.Red)}
		for _, text := range row[1:] {
			cells = append(cells, plain(text))
		}
		t.add(cells...)
	}
	var out bytes.Buffer
	t.print(&out, text.Painter{On: colours}, "")
	return out.String()
}

// DidYouMean suggests the nearest known word.
func DidYouMean(word string, known ...string) string { return didYouMean(word, known) }

// Quote quotes a word for a shell.
func Quote(word string) string { return quote(word) }

// Writable is the write test of doctor.
var Writable = writable

// Fill is fill for integers.
func Fill(limit int, after string, read func(limit int, after string) ([]int, string, error)) ([]int, string, error) {
	return fill(limit, after, read)
}

// IDRange returns the range of IDs with a prefix and the list cursor before it; all "" if no ID has the prefix.
func IDRange(beginning string) (from, to, cursor string) {
	f, t, ok := idRange(beginning)
	if !ok {
		return "", "", ""
	}
	return f.String(), t.String(), after(t)
}

// ResolveTask finds the task that an argument names.
func ResolveTask(ctx context.Context, c *weaver.Client, arg string) (task.ID, error) {
	s := newSession(App{}.withDefaults(), globals{}, streams{}, nil, time.Now())
	return s.resolveOne(ctx, c, wantTask, arg)
}

// Give names a column of a table that may shrink to Keep columns.
type Give struct {
	Column string
	Keep   int
}

// TableFitted prints one row under a header in width columns. A cell may have a short form after a bar.
func TableFitted(width int, gives []Give, head, row []string) string {
	t := newTable(head...)
	for _, g := range gives {
		t.gives = append(t.gives, give{g.Column, g.Keep})
	}
	var cells []cell
	for _, r := range row {
		long, short, _ := strings.Cut(r, "|")
		cells = append(cells, cell{text: long, short: short})
	}
	t.add(cells...)
	t.fit(width)
	var out bytes.Buffer
	t.print(&out, text.Painter{}, "")
	return out.String()
}

// CompleteWords returns the completions of a command line.
func CompleteWords(words ...string) []string {
	parser, err := newParser(App{}.withDefaults(), new(grammar), io.Discard)
	if err != nil {
		panic(err)
	}
	var found []string
	for _, w := range completeWords(parser.Model.Node, words) {
		found = append(found, w.word)
	}
	return found
}

// GlobFiles calls globFiles.
func GlobFiles(dir, pattern string) ([]string, error) { return globFiles(dir, pattern) }

// Parse parses the words of a command line without running it.
func Parse(words ...string) error {
	var g grammar
	parser, err := newParser(App{}.withDefaults(), &g, new(bytes.Buffer))
	if err != nil {
		return err
	}
	_, err = parser.Parse(words)
	return err
}

// HealthPaths are the paths that --health serves.
var HealthPaths = healthPaths

// Parsed holds the verb, the URLs and the flags of a service's command line.
type Parsed struct {
	Verb  string
	Addr  string        // on which it listens; "" for no address
	Drain time.Duration // its drain timeout; 0 for other verbs
	URL   string        // that healthcheck asks
	Files []string      // of secrets
}

// ParseService reads a command line without running it.
func ParseService(args []string) (Parsed, error) {
	var g grammar
	parser, err := newParser(App{}.withDefaults(), &g, io.Discard)
	if err != nil {
		return Parsed{}, err
	}
	kctx, err := parser.Parse(args)
	if err != nil {
		return Parsed{}, err
	}
	p := Parsed{Verb: kctx.Command()}
	switch verb, _, _ := strings.Cut(p.Verb, " "); verb {
	case "serve":
		p.Addr, p.Drain, p.Files = g.Serve.Addr, g.Serve.DrainTimeout, []string{g.Serve.TokenFile}
		_, err = g.Serve.roles(&session{flags: g.Globals})
	case "worker":
		p.Addr, p.Drain = g.Worker.Health, g.Worker.DrainTimeout
		_, _, err = g.Worker.roles()
	case "healthcheck":
		p.URL = g.Health.URL
	case "token":
		p.Files = []string{g.Token.New.TokenFile, g.Token.New.Keep}
		_, err = g.Token.New.parse()
	}
	return p, err
}

// Collectors returns all collectors of /metrics.
func Collectors(client *weaver.Client, orders order.Store) []prometheus.Collector {
	d := &door{metrics: httpapi.NewMetrics(), orders: &ordersPart{metrics: httpapi.NewOrderMetrics()}}
	ofStore := httpapi.NewStoreMetrics(client, nil)
	ofStore.CountHints()
	return append(d.collectors(), ofStore, httpapi.NewOrderStoreMetrics(orders, client.Namespace(), nil))
}
