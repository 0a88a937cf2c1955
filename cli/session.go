package cli

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// globals are the flags of every verb.
type globals struct {
	Store     string `env:"WEAVER_STORE" placeholder:"URL" help:"Where tasks are kept: sqlite:PATH or postgres://USER@HOST/DATABASE. Default: the nearest weaver.db upwards from the pipeline's folder, or from this one."`
	Namespace string `env:"WEAVER_NAMESPACE" placeholder:"NAME" help:"Environment in the store; default: default"`
	Output    string `short:"o" enum:"text,json" default:"text" placeholder:"FORMAT" help:"How to print: text or json."`
	NoColor   bool   `help:"No colours, also on a terminal ($$NO_COLOR)."`
	Delivery  string `env:"WEAVER_DELIVERY" hidden:"" help:"How workers are told of due tasks: memory, by the store itself. Others are not built yet."`
	CodecKey  string `env:"WEAVER_CODEC_KEY" placeholder:"FILE" help:"Keys that seal and open what is stored, see codec --help; default: none."`
	Bucket    string `env:"WEAVER_BUCKET" placeholder:"dir:PATH" help:"Where large values and artifacts are kept; none: nowhere. Default: the store's file with .blobs behind it; none for PostgreSQL, whose workers may be on several machines."`
}

// session is one run of the program: what was asked for globally, and where
// results go.
type session struct {
	app   App
	flags globals
	stdin io.Reader
	out   *bytes.Buffer // the result of a verb that ends soon
	live  io.Writer     // the standard output, for verbs that print as they go
	errs  io.Writer     // the standard error
	paint text.Painter
	clock explain.Clock

	terminal bool // live is a person's screen
	width    int  // of that screen, in columns; 0: there is none, or it is not known
	created  bool // the store was not there before
	named    bool // the store was named by the flag or the variable
	namedNS  bool // the namespace was, too

	sealer weaver.Codec // of codec, once it was asked for
}

func newSession(app App, g globals, std streams, out *bytes.Buffer, now time.Time) *session {
	named := g.Store != "" // an empty variable is none
	if !named {
		g.Store = defaultStore(".")
	}
	namedNS := g.Namespace != ""
	g.Namespace = cmp.Or(g.Namespace, weaver.DefaultNamespace)
	plain := g.NoColor || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	terminal := isTerminal(std.stdout)
	width, _ := view.TerminalSize(std.stdout)
	return &session{
		app: app, flags: g, stdin: std.stdin, out: out, live: std.stdout, errs: std.stderr,
		paint:    text.Painter{On: terminal && !plain},
		clock:    explain.Clock{Now: now, Zone: time.Local, Gone: make(map[task.ID][]string)},
		terminal: terminal && os.Getenv("TERM") != "dumb",
		named:    named,
		namedNS:  namedNS,
		width:    width,
	}
}

// useStoreOfArgs chooses the default store of the pipeline that arguments name,
// unless one was named.
func (s *session) useStoreOfArgs(args []string) {
	if found := storeOfArgs(args); found != "" && !s.named {
		s.flags.Store = found
	}
}

// storeOfArgs returns the default store of the first argument that is a
// pipeline's file, or FILE/TASK; "" if there is none.
func storeOfArgs(args []string) string {
	for _, arg := range args {
		for path := arg; path != ""; path = strings.TrimSuffix(path[:max(0, strings.LastIndexByte(path, '/'))], "/") {
			ext := strings.ToLower(filepath.Ext(path))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && (ext == ".yaml" || ext == ".yml") {
				return defaultStore(filepath.Dir(path))
			}
		}
	}
	return ""
}

// useStoreOf chooses the default store of a pipeline, unless one was named.
func (s *session) useStoreOf(f *pipelineFile) {
	if !s.named {
		s.flags.Store = defaultStore(filepath.Dir(f.path))
	}
}

// json reports whether -o json was given.
func (s *session) json() bool { return s.flags.Output == "json" }

// command writes a command line for people to use, with the global flags
// that it needs to mean the same store and namespace.
func (s *session) command(args ...string) string {
	words := []string{s.app.Name}
	ofFile := !s.named && storeOfArgs(args) == s.flags.Store // it is found again
	if !ofFile && s.flags.Store != cmp.Or(os.Getenv("WEAVER_STORE"), defaultStore(".")) {
		words = append(words, "--store", quote(s.store()))
	}
	if s.flags.Namespace != cmp.Or(os.Getenv("WEAVER_NAMESPACE"), weaver.DefaultNamespace) {
		words = append(words, "--namespace", quote(s.flags.Namespace))
	}
	if s.flags.CodecKey != os.Getenv("WEAVER_CODEC_KEY") {
		words = append(words, "--codec-key", quote(s.flags.CodecKey))
	}
	if s.flags.Bucket != os.Getenv("WEAVER_BUCKET") {
		words = append(words, "--bucket", quote(s.flags.Bucket))
	}
	for _, a := range args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// quote makes a word safe to paste into a shell.
func quote(word string) string { return text.ShellWord(word) }
