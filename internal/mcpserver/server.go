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

// Config says what a server does, and for whom.
type Config struct {
	Version string         // of the program, for clients
	Client  *weaver.Client // required

	// Find finds what an argument names: an id, the beginning of one, JOB/TASK, or the name
	// of a job, which is its latest. Of its errors those of Said are shown. Default: ids only.
	Find func(ctx context.Context, what Kind, name string) (task.ID, error)

	// Why explains where a task or job stands; Logs returns what the commands of a task
	// wrote, 0 meaning its last attempt, or the end of it, and how many bytes are before that. Types lists the task types that may be enqueued,
	// and Draft makes a task of one. Of their errors those of Said, and those of package
	// weaver that a caller can avoid, are shown. Required.
	Why   func(ctx context.Context, id task.ID) (string, error)
	Logs  func(ctx context.Context, id task.ID, attempt int) (end string, before int64, err error)
	Types func(ctx context.Context) ([]string, error)
	Draft func(ctx context.Context, typeName string, input json.RawMessage, opts ...weaver.EnqueueOption) (weaver.Draft, error)

	AllowWrites  bool   // there are tools that change something
	ShowPayloads bool   // values and logs are shown
	ToShow       string // what shows them, for messages; default "start the server with --show-payloads"
	Actor        string // in the audit; default "mcp"

	Logger *slog.Logger // failures, which are not shown as they are; default slog.Default()
}

const (
	maxText  = 64 << 10 // bytes of an answer
	maxValue = 4 << 10  // bytes of a value in it
	maxBody  = 8 << 20  // bytes of a request over HTTP
)

const instructions = "Tools for the jobs and tasks of a Weaver store. why answers what is the matter with a job, by its name, or with a task; list_jobs, list_tasks and counts say what there is."

// New returns a server with the tools that a Config allows.
func New(c Config) (*mcp.Server, error) {
	if c.Client == nil || c.Why == nil || c.Logs == nil || c.Types == nil || c.Draft == nil {
		return nil, errors.New("an MCP server needs Client, Why, Logs, Types and Draft")
	}
	c.ToShow = cmp.Or(c.ToShow, "start the server with --show-payloads")
	c.Actor, c.Logger = cmp.Or(c.Actor, "mcp"), cmp.Or(c.Logger, slog.Default())
	s := mcp.NewServer(&mcp.Implementation{Name: "weaver", Version: c.Version}, &mcp.ServerOptions{Instructions: instructions})
	t := tools{c, make(map[string]arguments)}
	t.addReads(s)
	if c.AllowWrites {
		t.addWrites(s)
	}
	s.AddReceivingMiddleware(t.meant)
	return s, nil
}

// ErrDenied is what an access decision returns for a request that may do nothing.
var ErrDenied = errors.New("access denied")

// Handler serves the protocol over HTTP. Each request is decided upon by itself: access
// returns the Config for the one who sent it, or an error, and there are no sessions that
// another one could take over. ErrDenied is answered by 401, other errors by 503. The Host
// of a request is access's to look at, too.
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

// tools are the tools of one server.
type tools struct {
	Config
	args map[string]arguments // by tool
}

// arguments are those of a tool.
type arguments struct {
	names, required []string
	decode          func(json.RawMessage) error // reports a value of another type
}

// meant answers calls of tools that there are not, and arguments that a tool does not have,
// with what may have been meant.
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
		return say("the arguments of %s are no JSON object", tool)
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

// exact reads the arguments of a tool, which the library has checked, once more: in what
// it makes of them a number of a value has the digits that a float64 keeps.
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

// checkTexts refuses arguments with texts that no store has. Values are not looked at:
// their JSON is kept as it is.
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

// Kind says what an argument may name.
type Kind int

// What an argument names.
const (
	Task Kind = iota
	Job
	Either // a job or a task
)

// find finds what an argument names.
func (t tools) find(ctx context.Context, what Kind, name string) (task.ID, error) {
	name = strings.TrimSpace(name)
	got, err := task.ParseID(name)
	switch {
	case err == nil:
		return got, nil
	case name == "":
		return got, say("id is empty: list_tasks and list_jobs list what there is")
	case t.Find != nil:
		return t.Find(ctx, what, short(name, 1000))
	}
	return got, say("id %q is no id: give all 26 characters of it, as list_tasks prints them", short(name, 64))
}

// short cuts a text that is longer than limit bytes, between characters.
func short(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:limit], len(s)-limit)
}

// text writes an answer as JSON.
func text(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write the answer: %w", err)
	}
	return string(raw), nil
}

// Serve speaks the protocol over a pair of streams until in ends, or ctx does. A line that
// is no message is answered, and the session goes on. What goes wrong in it is logged;
// nothing but the protocol is written to out.
func Serve(ctx context.Context, s *mcp.Server, in io.Reader, out io.Writer) error {
	w := &locked{w: out}
	return s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(&messages{in: bufio.NewReader(in), out: w}), Writer: w})
}
