package mcpserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/task"
)

// Config configures a server for one caller.
type Config struct {
	Version string         // program version, reported to clients
	Client  *weaver.Client // required

	// Find resolves an argument: an ID, the beginning of one, JOB/TASK, or the name of a job, which means its latest
	// run. Only errors marked by Said are shown. By default only IDs are accepted.
	Find func(ctx context.Context, what Kind, name string) (task.ID, error)

	// Why explains the state of a task or job. Logs returns the end of the output of a task's commands in an attempt
	// (0: the last one), and the number of bytes before it. Types lists the task types that may be enqueued, and
	// Draft builds a task of one type. Errors marked by Said, and those of package weaver that a caller can avoid,
	// are shown. All four are required.
	Why   func(ctx context.Context, id task.ID) (string, error)
	Logs  func(ctx context.Context, id task.ID, attempt int) (end string, before int64, err error)
	Types func(ctx context.Context) ([]string, error)
	Draft func(ctx context.Context, typeName string, input json.RawMessage, opts ...weaver.EnqueueOption) (weaver.Draft, error)

	Orders Orders // tools of orders; the zero value offers none

	AllowWrites  bool   // offer tools that change tasks
	ShowPayloads bool   // show values and logs
	ToShow       string // how to enable ShowPayloads, for messages; default "start the server with --show-payloads"
	Actor        string // actor in the audit; default "mcp"

	Logger *slog.Logger // logs failures that are hidden from the caller; default slog.Default()
}

const (
	maxText  = 64 << 10 // maximum answer, in bytes
	maxValue = 4 << 10  // maximum value in an answer, in bytes
	maxBody  = 8 << 20  // maximum HTTP request, in bytes
)

const instructions = "Tools for the jobs and tasks of a Weaver store. why explains the problem of a job, by its name, or of a task; list_jobs, list_tasks and counts give an overview."

// New returns a server with the tools that the Config allows.
func New(c Config) (*mcp.Server, error) {
	if c.Client == nil || c.Why == nil || c.Logs == nil || c.Types == nil || c.Draft == nil {
		return nil, errors.New("an MCP server needs Client, Why, Logs, Types and Draft")
	}
	c.ToShow = cmp.Or(c.ToShow, "start the server with --show-payloads")
	c.Actor, c.Logger = cmp.Or(c.Actor, "mcp"), cmp.Or(c.Logger, slog.Default())
	s := mcp.NewServer(&mcp.Implementation{Name: "weaver", Version: c.Version}, &mcp.ServerOptions{Instructions: instructions})
	t := tools{c, make(map[string]arguments)}
	t.addReads(s)
	t.addScheduleReads(s)
	t.addLimitReads(s)
	if c.AllowWrites {
		t.addWrites(s)
		t.addScheduleWrites(s)
		t.addLimitWrites(s)
	}
	if c.Orders.Store != nil {
		t.addOrderReads(s)
	}
	if c.Orders.Store != nil && c.AllowWrites {
		t.addOrderWrites(s)
	}
	s.AddReceivingMiddleware(t.meant)
	return s, nil
}

// ErrDenied is returned by an access function to deny a request.
var ErrDenied = errors.New("access denied")

// Handler serves the protocol over HTTP. Each request is authorized separately: access returns the Config for its
// sender, or an error. There are no sessions that another sender could take over. ErrDenied is answered by 401, any
// other error by 503. access must also check the Host of a request.
func Handler(access func(*http.Request) (Config, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := access(r)
		var s *mcp.Server
		if err == nil {
			s, err = New(c)
		}
		switch {
		case errors.Is(err, ErrDenied):
			http.Error(w, "access denied: send a token that may read", http.StatusUnauthorized)
		case err != nil:
			http.Error(w, "the server cannot answer now: try again later", http.StatusServiceUnavailable)
		default:
			opts := &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody}
			mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts).ServeHTTP(w, r)
		}
	})
}

// tools holds the tools of one server.
type tools struct {
	Config
	args map[string]arguments // by tool
}

// arguments describes the arguments of a tool.
type arguments struct {
	names, required []string
	decode          func(json.RawMessage) error // reports a value of the wrong type
}

// meant answers calls of unknown tools, and calls with unknown arguments, with a suggestion.
func (t tools) meant(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, is := req.(*mcp.CallToolRequest); is && call.Params != nil {
			if err := t.check(call.Params.Name, call.Params.Arguments); err != nil {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}, IsError: true}, nil
			}
		}
		return next(ctx, method, req)
	}
}

func (t tools) check(tool string, given json.RawMessage) error {
	known, there := t.args[tool]
	if !there {
		if slices.Contains(writes, tool) {
			return say("this server has no tool %q: its tools only read. Its user offers it with `weaver mcp --allow-writes`, or over HTTP with a token that may operate", tool)
		}
		all := slices.Sorted(maps.Keys(t.args))
		return say("there is no tool %q%s; the tools are %s", short(tool, 64), didYouMean(tool, all), strings.Join(all, ", "))
	}
	var args map[string]json.RawMessage
	if len(given) > 0 && json.Unmarshal(given, &args) != nil {
		return say("the arguments of %s are not a JSON object", tool)
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !slices.Contains(known.names, name) {
			return say("%s has no argument %q%s; it has %s", tool, short(name, 64), didYouMean(name, known.names), cmp.Or(strings.Join(known.names, ", "), "none"))
		}
	}
	for _, name := range known.required {
		if len(args[name]) == 0 {
			return say("%s needs the argument %s", tool, name)
		}
	}
	return known.decode(given)
}

// add adds a tool whose answer is text.
func add[In any](t tools, s *mcp.Server, name, about string, hints *mcp.ToolAnnotations, do func(context.Context, In) (string, error)) {
	of := arguments{decode: func(raw json.RawMessage) error {
		var in In
		return exact(raw, &in)
	}}
	for _, f := range jsonfields.Of(reflect.TypeFor[In]()) {
		of.names = append(of.names, f.Name)
		if !f.Optional {
			of.required = append(of.required, f.Name)
		}
	}
	t.args[name] = of
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: about, Annotations: hints}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		if err := exact(req.Params.Arguments, &in); err != nil {
			return nil, nil, err
		}
		answer, err := do(ctx, in)
		if err != nil {
			return nil, nil, t.explained(ctx, name, err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer}}}, nil, nil
	})
}

// exact decodes the arguments of a tool again after the library has checked them. The library's decoding keeps only
// the digits of a number that a float64 holds.
func exact[In any](args json.RawMessage, in *In) error {
	if len(args) == 0 {
		return nil
	}
	var read In
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&read); err != nil {
		return say("the arguments cannot be read: %w", jsonfields.Mistake(err, reflect.TypeFor[In]()))
	}
	if err := checkTexts(reflect.ValueOf(read)); err != nil {
		return err
	}
	*in = read
	return nil
}

// checkTexts refuses arguments with texts that no store accepts. It skips values: their JSON is stored unchanged.
func checkTexts(args reflect.Value) error {
	if args.Kind() != reflect.Struct {
		return nil
	}
	for i := range args.NumField() {
		f := args.Type().Field(i)
		if f.Anonymous {
			if err := checkTexts(args.Field(i)); err != nil {
				return err
			}
		}
		if !f.IsExported() {
			continue
		}
		var texts []string
		switch v := args.Field(i).Interface().(type) {
		case string:
			texts = []string{v}
		case []string:
			texts = v
		case map[string]string:
			texts = slices.AppendSeq(slices.Collect(maps.Keys(v)), maps.Values(v))
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for _, text := range texts {
			if err := task.CheckText(name, text); err != nil {
				return say("%w", err)
			}
		}
	}
	return nil
}

// Kind is the kind of object that an argument may name.
type Kind int

// Kinds of named objects.
const (
	Task Kind = iota
	Job
	Either // a job or a task
)

// find resolves an argument to the ID of the named object.
func (t tools) find(ctx context.Context, what Kind, name string) (task.ID, error) {
	name = strings.TrimSpace(name)
	got, err := task.ParseID(name)
	switch {
	case err == nil:
		return got, nil
	case name == "":
		return got, say("id is empty: list_tasks and list_jobs list the ids")
	case t.Find != nil:
		return t.Find(ctx, what, short(name, 1000))
	}
	return got, say("id %q: not an id; pass all 26 characters, as list_tasks prints them", short(name, 64))
}

// short truncates a text to limit bytes, between characters.
func short(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:limit], len(s)-limit)
}

// text encodes an answer as JSON.
func text(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write the answer: %w", err)
	}
	return string(raw), nil
}

// Serve speaks the protocol over a pair of streams until in or ctx ends. It answers a malformed line and continues
// the session. It logs the session's errors and writes only protocol messages to out.
func Serve(ctx context.Context, s *mcp.Server, in io.Reader, out io.Writer) error {
	w := &locked{w: out}
	return s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(&messages{in: bufio.NewReader(in), out: w}), Writer: w})
}
