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
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// globals are the flags of every verb.
type globals struct {
	Store     string `env:"WEAVER_STORE" placeholder:"URL" help:"Store: sqlite:PATH or postgres://USER@HOST/DATABASE."`
	Namespace string `env:"WEAVER_NAMESPACE" placeholder:"NAME" help:"Namespace in the store; default: default."`
	Output    string `short:"o" enum:"text,json" default:"text" placeholder:"FORMAT" help:"Output format: text or json."`
	NoColor   bool   `help:"No colours, even on a terminal ($$NO_COLOR)."`
	Delivery  string `env:"WEAVER_DELIVERY" placeholder:"URL" help:"Hints for idle workers: redis://HOST:PORT or memory."`
	CodecKey  string `env:"WEAVER_CODEC_KEY" placeholder:"FILE" help:"Key file for stored values; see codec --help."`
	Bucket    string `env:"WEAVER_BUCKET" placeholder:"URL" help:"Bucket for large values: dir:PATH, s3://BUCKET or none."`
}

// session is one run of the program: its global flags and its output streams.
type session struct {
	app   App
	flags globals
	stdin io.Reader
	out   *bytes.Buffer // the result of a short-running verb
	live  io.Writer     // the standard output, for verbs that print continuously
	errs  io.Writer     // the standard error
	paint text.Painter
	clock explain.Clock

	terminal bool // live is a terminal
	width    int  // width of the terminal in columns; 0 if unknown or not a terminal
	created  bool // this verb created the store
	named    bool // the store was set by the flag or the variable
	namedNS  bool // so was the namespace

	sealer codec.Codec // of codec, after its first call
	hints  *hints      // of delivery, after its first call
	remote *remote     // of remoteBucket, after its first call
}

func newSession(app App, g globals, std streams, out *bytes.Buffer, now time.Time) *session {
	named := g.Store != "" // an empty variable counts as unset
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

// useStoreOfArgs selects the default store of the pipeline that the arguments name, unless a store was set.
func (s *session) useStoreOfArgs(args []string) {
	if found := storeOfArgs(args); found != "" && !s.named {
		s.flags.Store = found
	}
}

// storeOfArgs returns the default store for the first argument that is a pipeline file or FILE/TASK; "" if no
// argument is.
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

// useStoreOf selects the default store of a pipeline, unless a store was set.
func (s *session) useStoreOf(f *pipelineFile) {
	if !s.named {
		s.flags.Store = defaultStore(filepath.Dir(f.path))
	}
}

// json reports whether -o json is set.
func (s *session) json() bool { return s.flags.Output == "json" }

// command formats a command line for users, with the global flags that select the same store and namespace.
func (s *session) command(args ...string) string {
	words := []string{s.app.Name}
	ofFile := !s.named && storeOfArgs(args) == s.flags.Store // found again by default
	if !ofFile && s.flags.Store != cmp.Or(os.Getenv("WEAVER_STORE"), defaultStore(".")) {
		words = append(words, "--store", quote(s.store()))
	}
	if s.flags.Namespace != cmp.Or(os.Getenv("WEAVER_NAMESPACE"), weaver.DefaultNamespace) {
		words = append(words, "--namespace", quote(s.flags.Namespace))
	}
	if s.flags.CodecKey != os.Getenv("WEAVER_CODEC_KEY") {
		words = append(words, "--codec-key", quote(s.flags.CodecKey))
	}
	if _, err := s.bucketName(); err == nil && s.flags.Bucket != os.Getenv("WEAVER_BUCKET") {
		words = append(words, "--bucket", quote(s.flags.Bucket))
	}
	for _, a := range args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// quote quotes a word so that it is safe to paste into a shell.
func quote(word string) string { return text.ShellWord(word) }
