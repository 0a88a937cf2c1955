package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/build"
)

// App is a command line program. The zero value is the weaver command.
type App struct {
	Name    string // program name in help and messages; default "weaver"
	Version string // output of the verb version; default the main module's version

	// Handlers lists the program's own task types for run and worker, in addition to those of package builtin.
	Handlers []weaver.Handler

	// Decider and Router configure the engines that run and worker start; default as in weaver.Config.
	Decider decide.Decider
	Router  decide.Router

	Plugins []weaver.Plugin // of the same engines

	// Codec encrypts and decrypts stored values, unless --codec-key is set; default no encryption.
	Codec codec.Codec

	// Deciders are available to decide replay by name, in addition to "default" and "strict".
	Deciders map[string]decide.Decider
}

func (a App) withDefaults() App {
	if a.Name == "" {
		a.Name = "weaver"
	}
	if a.Version == "" {
		a.Version = build.Version()
	}
	return a
}

// Main runs the command line of this process and exits with its exit code. An interrupt ends the verb's context. A
// second one ends the process, except that run and worker give their commands time to end. As process 1 of a
// container it runs itself again as a child, and reaps the processes that commands leave behind.
func Main(app App) {
	if code, done := runAsInit(); done {
		os.Exit(code)
	}
	if os.Getenv("GOGC") == "" {
		tuneGC()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, app, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Run runs one command line and returns its exit code; see the package comment. It also reads the environment
// variables WEAVER_STORE, WEAVER_NAMESPACE, WEAVER_CODEC_KEY, WEAVER_DELIVERY, WEAVER_BUCKET and NO_COLOR.
func Run(ctx context.Context, app App, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app = app.withDefaults()
	if len(args) == 0 { // no arguments show the help, but exit with an error
		Run(ctx, app, []string{"--help"}, stdin, stderr, stderr)
		return exitUsage
	}
	// The output is buffered, so that only one write to stdout can fail.
	var out bytes.Buffer
	err := run(ctx, app, args, streams{stdin, stdout, stderr}, &out)
	if _, werr := stdout.Write(out.Bytes()); werr != nil && err == nil {
		err = fmt.Errorf("write the result: %w", werr)
	}
	if asksForJSON(args) {
		return reportJSON(stderr, app, err)
	}
	return report(stderr, app, err)
}

// streams are the standard streams of the process.
type streams struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

func run(ctx context.Context, app App, args []string, std streams, out *bytes.Buffer) error {
	var g grammar
	parser, err := newParser(app, &g, out)
	if err != nil {
		return err
	}
	kctx, err := parser.Parse(args)
	switch {
	case errors.Is(err, errHelp):
		return nil
	case err != nil:
		return usageError(app, err)
	}
	if err := checkFilters(kctx); err != nil {
		return usageError(app, err)
	}
	s := newSession(app, g.Globals, std, out, time.Now())
	s.useStoreOfArgs(args)
	kctx.BindTo(ctx, (*context.Context)(nil))
	if err = kctx.Run(s); err == nil || errors.As(err, new(*exitError)) {
		return err
	}
	return &exitError{code: exitCode(err), err: err, advice: advice(s.command, err)}
}

// grammar defines the command line for kong.
type grammar struct {
	Help    helpFlag    `short:"h" help:"Help, also for a command."`
	Print   versionFlag `name:"version" help:"Version of this program."`
	Globals globals     `embed:"" group:"global"`

	Run      runCmd         `cmd:"" help:"Run a pipeline from a file, or resume its job."`
	Submit   submitCmd      `cmd:"" help:"Store a pipeline or a single task for a worker to run."`
	Check    checkCmd       `cmd:"" help:"Check pipeline files, for example in CI."`
	Vet      vetCmd         `cmd:"" help:"Find task types in Go packages that no program handles."`
	Graph    graphCmd       `cmd:"" help:"Draw the tasks of a pipeline and their needs."`
	Worker   workerCmd      `cmd:"" help:"Run the tasks of a store, or list its workers."`
	Serve    serveCmd       `cmd:"" help:"Serve the store over HTTP until interrupted."`
	Dev      devCmd         `cmd:"" help:"Serve a store and run your program; restart it on changes."`
	Browser  browserCmd     `cmd:"" help:"Programs that run in a tab of a browser."`
	Health   healthcheckCmd `cmd:"" name:"healthcheck" help:"Ask a server or worker whether it is well."`
	Token    tokenCmd       `cmd:"" help:"Create tokens and passwords for serve."`
	Task     taskCmd        `cmd:"" help:"List, show and operate tasks."`
	Job      jobCmd         `cmd:"" help:"List, show, retry and cancel jobs."`
	Retry    retryCmd       `cmd:"" help:"Retry the failed and cancelled tasks of a job."`
	Queue    queueCmd       `cmd:"" help:"List, pause and resume queues."`
	Schedule scheduleCmd    `cmd:"" help:"List, show and operate schedules."`
	Limit    limitCmd       `cmd:"" help:"List, set and delete limits of queues, types, labels and rates."`
	Order    orderCmd       `cmd:"" help:"Send, list, show and operate orders to a partner."`
	Stats    statsCmd       `cmd:"" help:"Count attempts by outcome, with their run and wait times."`
	Artifact artifactCmd    `cmd:"" help:"List, fetch and clean up the artifacts of tasks."`
	Logs     logsCmd        `cmd:"" help:"Print the output of the commands of a task or job."`
	Decide   decideCmd      `cmd:"" help:"Replay recorded decisions with another Decider."`
	Why      whyCmd         `cmd:"" help:"Explain the state of a task or job, and what to do."`
	Migrate  migrateCmd     `cmd:"" help:"Create or update the store's schema."`
	Doctor   doctorCmd      `cmd:"" help:"Check the consistency of the store."`
	Bench    benchCmd       `cmd:"" help:"Measure the throughput of the store."`
	Codec    codecCmd       `cmd:"" help:"Create encryption keys, and re-encrypt stored values."`
	Forget   forgetCmd      `cmd:"" help:"Erase the recorded values of tasks, but keep the tasks."`
	Backup   backupCmd      `cmd:"" help:"Copy the store into a new file while workers run."`
	Export   exportCmd      `cmd:"" help:"Copy a task or job into a file for a report: a capsule."`
	Replay   replayCmd      `cmd:"" help:"Check a capsule and show what it recorded."`
	MCP      mcpCmd         `cmd:"" name:"mcp" help:"Serve the tools of the Model Context Protocol (MCP)."`
	HelpOf   helpCmd        `cmd:"" name:"help" help:"Show help, also of a command."`
	Version  versionCmd     `cmd:"" help:"Show the version of this program."`

	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:""`
}

func newParser(app App, g *grammar, out io.Writer) (*kong.Kong, error) {
	parser, err := kong.New(
		g,
		kong.Name(app.Name),
		kong.Description("Run, read and operate the tasks of a Weaver store. The default store is the nearest weaver.db upwards from the pipeline's folder or the current folder. "+
			"The default bucket for large values is the folder STORE.blobs next to the store's file; PostgreSQL has no default, because its workers may be on several machines. "+
			"Exit codes: 0 done, 1 work failed, 2 usage or bad input, 3 store unreachable. With -o json errors are JSON as well, on the standard error."),
		kong.NoDefaultHelp(),
		kong.Vars{versionVar: versionLine(app)},
		kong.Writers(out, out),
		kong.Exit(func(int) {}), // errors are returned; kong must not exit
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{{Key: "task", Title: "Flags of a single task:"}, {Key: "global", Title: "Global flags:"}}),
	)
	if err != nil {
		return nil, fmt.Errorf("build the command line: %w", err)
	}
	return parser, nil
}
