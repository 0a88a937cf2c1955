package cli

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
)

// engineParts configures the engine of a verb.
type engineParts struct {
	handlers []weaver.Handler
	queues   map[string]int // nil: all queues
	flags    *workFlags
	log      *workLog
	logs     *keptLogs // opened by newEngine; the caller closes it
	errs     io.Writer
	door     *door // exposes the engine's metrics; nil: no server

	noPublisher bool // the engine sends no hints
}

// newEngine returns an engine for the tasks of a store. The engine announces its types.
func (s *session) newEngine(st store.Store, p engineParts) (*weaver.Engine, error) {
	bucket, err := s.bucket(true)
	if err != nil {
		return nil, err
	}
	codec, err := s.codec()
	if err != nil {
		return nil, err
	}
	transport, err := s.delivery()
	if err != nil {
		return nil, err
	}
	logger := warnings(p.errs)
	p.logs.open(s, s.sealedLogs(codec), logger)
	plugins := append(slices.Clip(s.app.Plugins), schema.Plugin())
	if p.door != nil {
		plugins = append(plugins, p.door.metrics, p.door.health)
	}
	eng, err := weaver.New(st, weaver.Config{
		Namespace:    s.flags.Namespace,
		Handlers:     p.handlers,
		Concurrency:  p.flags.slots(),
		Queues:       p.queues,
		DrainTimeout: p.flags.DrainTimeout,
		Logger:       slog.New(engineLog{Handler: logger.Handler()}),
		Sink:         p.log,
		Bucket:       bucket,
		Decider:      s.app.Decider,
		Router:       s.app.Router,
		Plugins:      plugins,
		Codec:        codec,
		Delivery:     transport,
		NoPublisher:  p.noPublisher,
	})
	if err != nil {
		return nil, badInput("", "%w", err)
	}
	if p.door != nil {
		p.door.health.watch(eng)
	}
	return eng, nil
}

// announce publishes the types of an engine before it runs, so that readers see them at once. If a write fails here,
// the engine writes the types when it runs.
func announce(ctx context.Context, eng *weaver.Engine) { _ = schema.AnnounceHandled(ctx, eng) }

// warnings returns a logger for problems while a verb runs.
func warnings(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// namesOf lists the task types of handlers.
func namesOf(handlers []weaver.Handler) []string {
	names := make([]string, len(handlers))
	for i, h := range handlers {
		names[i] = h.Name()
	}
	slices.Sort(names)
	return slices.Compact(names) // a type may have several handlers
}

// handlers returns the handlers selected by --handlers.
func (c *workerFlags) handlers(s *session, work *workFlags, logs *keptLogs) ([]weaver.Handler, error) {
	work.noMetadata = true
	sets := c.Handlers
	if len(sets) == 0 {
		sets = []string{"builtin"}
		if len(s.app.Handlers) > 0 {
			sets = []string{"app"}
		}
	}
	var app, builtins []weaver.Handler
	for _, set := range sets {
		switch set {
		case "app":
			if len(s.app.Handlers) == 0 {
				return nil, badInput("Use --handlers builtin, or a program of your own that gives its handlers to cli.Main.", "--handlers app: %s has no task types of its own", s.app.Name)
			}
			app = s.app.Handlers
		case "builtin":
			builtins = work.builtins(logs)
		default:
			known := []string{"app", "builtin"}
			return nil, badInput("", "--handlers %q is not known%s; the sets are %s", set, didYouMean(set, known), join(known))
		}
	}
	return appOver(builtins, app), nil
}

// queues returns the queues named by --queue with their task limits. The default limit is the number of slots. nil
// means all queues.
func (c *workerFlags) queues(slots int) (map[string]int, error) {
	if len(c.Queue) == 0 {
		return nil, nil
	}
	queues := make(map[string]int, len(c.Queue))
	for _, arg := range c.Queue {
		name, limit, limited := strings.Cut(arg, "=")
		n := slots
		if limited {
			var err error
			if n, err = strconv.Atoi(limit); err != nil || n < 1 {
				return nil, badInput("", "--queue %q: want NAME or NAME=N with N at least 1, for example --queue billing=4", arg)
			}
		}
		switch _, twice := queues[name]; {
		case name == "":
			return nil, badInput("", "--queue %q: the name is empty", arg)
		case twice:
			return nil, badInput("", "--queue %s is given twice", name)
		}
		queues[name] = n
	}
	return queues, nil
}
