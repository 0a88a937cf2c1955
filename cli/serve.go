package cli

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// serveCmd is the verb serve.
type serveCmd struct {
	Addr          string         `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on; default 127.0.0.1:8080."`
	TokenFile     string         `placeholder:"FILE" help:"File with lines that token new prints."`
	PasswordFile  string         `placeholder:"FILE" help:"File with lines that token password prints."`
	CookieKeyFile string         `placeholder:"FILE" help:"File with the key that signs login cookies."`
	AllowedHost   []string       `placeholder:"HOST" help:"Additional Host name, or * for any; repeatable."`
	TrustedProxy  []string       `placeholder:"ADDRESS" help:"Address or network of a reverse proxy; repeatable."`
	Roles         []string       `placeholder:"ROLE" complete:"api,worker,publisher,reaper,collector,orders" help:"Roles: api, worker, publisher, reaper, collector, orders."`
	KeepEvents    *time.Duration `placeholder:"DURATION" help:"Event retention, at least 1m; 0 keeps the present one."`
	workerFlags
	healthFlag
	goneFlag
	workFlags
}

// Help is shown by serve --help.
func (serveCmd) Help() string {
	return "Serves the dashboard and the HTTP API of the store, and the tools of `mcp` at /mcp, until interrupted; docs/dashboard.md and " +
		"docs/http.md are the guides, /openapi.json the reference.\n\nWithout --token-file and --password-file every user of this machine has full access; the two files can be " +
		"combined, and passwords use basic authentication. An --addr outside the loopback interface needs one of them; port 0 picks a " +
		"free port. The key of --cookie-key-file has at least 32 bytes, and all servers behind one address use the same; by default it " +
		"is random, so that a restart ends the logins of browsers. --allowed-host adds a value of the Host header that is accepted " +
		"without credentials, besides the names of the loopback interface. --trusted-proxy names a reverse proxy, as 10.0.0.5 or " +
		"10.0.0.0/8, whose X-Forwarded-For identifies the sender.\n\nThe roles are api (HTTP), worker (run tasks), publisher (send hints of due tasks through --delivery), " +
		"reaper (take over from dead workers, end late tasks), collector (delete unused data) and orders (send orders); the default is " +
		"api,reaper,collector, and publisher if --delivery names a Redis. A worker or publisher is also a reaper and collector, and these " +
		"two come together. --keep-events keeps events for /v1/events; the default is a week, if the " +
		"store keeps no events yet. If the store's file is deleted, moved or replaced, the server waits for --store-gone-after and " +
		"then exits with 3. Without the role api, --health serves /healthz, /readyz and /metrics without credentials.\n\nWith OUTBOX_ENABLED=true it accepts orders at /do/order, and the role orders sends them; docs/orders.md " +
		"lists the variables.\n\nA user who may submit tasks may run commands on workers of the builtin types: give the role worker only " +
		"to a process whose tasks come from people you trust.\n\n  weaver token new ci --access submit,read --token-file tokens\n  " +
		"weaver serve --addr :8080 --token-file tokens"
}

// Roles of a process.
const (
	roleAPI       = "api"
	roleWorker    = "worker"
	rolePublisher = "publisher"
	roleReaper    = "reaper"
	roleCollector = "collector"
	roleOrders    = "orders"
)

// serveRoles are the roles of serve.
var serveRoles = []string{roleAPI, roleWorker, rolePublisher, roleReaper, roleCollector, roleOrders}

// Run implements the verb.
func (c *serveCmd) Run(ctx context.Context, s *session) (err error) {
	roles, err := c.roles(s)
	if err != nil {
		return err
	}
	if err := cmp.Or(c.workFlags.check(), c.goneFlag.check()); err != nil {
		return err
	}
	if k := c.KeepEvents; k != nil && *k != 0 && *k < store.MinFeedKeep {
		return badInput("", "--keep-events %s: want %s or more, or 0 to leave it as it is", *c.KeepEvents, store.MinFeedKeep)
	}
	logs, handlers := new(keptLogs), []weaver.Handler(nil)
	if roles[roleWorker] {
		if handlers, err = c.handlers(s, &c.workFlags, logs); err != nil {
			return err
		}
	} else if len(c.Handlers) > 0 || len(c.Queue) > 0 {
		return badInput("Add worker to --roles.", "--handlers and --queue are for the role worker")
	}
	queues, err := c.queues(c.slots())
	if err != nil {
		return err
	}
	var orders *ordersPart
	if roles[roleAPI] || roles[roleOrders] {
		if orders, err = ordersPartOf(roles[roleOrders], &c.addressFlags); err != nil {
			return err
		}
	}
	if roles[roleAPI] && c.Health != "" {
		return badInput("Ask --addr for /healthz, /readyz and /metrics.", "--health is for processes without the role api")
	}
	var door *door
	if roles[roleAPI] {
		who, err := c.credentials(s)
		if err != nil {
			return err
		}
		if door, err = listenOn(c.Addr, who); err != nil {
			return err
		}
		defer door.close()
	}
	health, err := c.healthFlag.listen()
	if err != nil {
		return err
	}
	if health != nil {
		defer health.close()
		health.orders = orders
	}
	return s.withWork(ctx, func(st store.Store) error {
		asIs := capsuleOf(st) != nil && c.Roles == nil
		if asIs { // nothing is to be done in it
			roles = map[string]bool{roleAPI: true}
		}
		log := s.workLog()
		p := process{say: log.say, door: door, health: health, drain: c.DrainTimeout}
		defer logs.close()
		client, err := s.newClient(st, true)
		if err != nil {
			return err
		}
		if roles[roleWorker] || roles[rolePublisher] || roles[roleReaper] || roles[roleCollector] {
			if p.eng, err = s.newEngine(st, engineParts{handlers: handlers, queues: queues, flags: &c.workFlags, log: log, logs: logs, errs: s.errs, door: cmp.Or(door, health), noPublisher: !roles[rolePublisher]}); err != nil {
				return err
			}
			announce(ctx, p.eng)
			client = p.eng.Client
		}
		if err := orders.open(s, client, c.DrainTimeout, s.errs); err != nil {
			return err
		}
		p.more = orders.parts()
		if door != nil {
			door.orders, door.addresses = orders, c.addressFlags
			if err := door.open(s, client, s.errs); err != nil {
				return err
			}
			if !asIs {
				keepEvents(ctx, client, c.KeepEvents, p.say)
			}
		}
		if err := health.openHealth(s, client); err != nil {
			return err
		}
		if s.created {
			p.say("there was no store: %s is new, and no task waits in it yet", s.storePlace())
		}
		if door != nil {
			log.serving(door.url())
		}
		c.greet(s, &p, roles, handlers)
		orders.greet(door != nil, p.say)
		health.greetHealth(p.say)
		s.warnOfNamespace(st, p.say)
		if p.eng == nil { // an engine reports it
			s.bucketAway()
		}
		if !roles[roleWorker] { // the engine of a worker reports it
			s.checkHints(ctx, warnings(s.errs))
		}
		err = s.untilGone(ctx, st, c.StoreGoneAfter, warnings(s.errs), p.run)
		p.say("server stopped")
		return err
	})
}

// eventsKept is the default event retention of `weaver serve`.
const eventsKept = 7 * 24 * time.Hour

// keepEvents sets the store's event retention: to keep, or, if keep is nil and the store keeps no events yet, to a
// week. If the store refuses, the server still serves the rest.
func keepEvents(ctx context.Context, client *weaver.Client, keep *time.Duration, say func(string, ...any)) {
	var err error
	if keep == nil {
		if _, err = client.EventPage(ctx, event.FeedRequest{Limit: 1}); errors.Is(err, store.ErrNoFeed) {
			err = client.KeepEvents(ctx, eventsKept)
		}
	} else if *keep != 0 {
		err = client.KeepEvents(ctx, *keep)
	}
	if err != nil {
		say("/v1/events cannot be followed: %v", err)
	}
}

// greet prints the running parts.
func (c *serveCmd) greet(s *session, p *process, roles map[string]bool, handlers []weaver.Handler) {
	var names []string
	for _, r := range serveRoles {
		if roles[r] {
			names = append(names, r)
		}
	}
	if p.door != nil {
		p.say("serving %s from %s, namespace %q: %s", p.door.url(), s.store(), s.flags.Namespace, strings.Join(names, ", "))
	} else {
		p.say("%s of %s, namespace %q", strings.Join(names, ", "), s.store(), s.flags.Namespace)
	}
	if roles[roleWorker] {
		p.say("%s: %s", text.Plural(c.slots(), "slot"), strings.Join(namesOf(handlers), ", "))
	}
	if p.door != nil && p.door.who.open {
		p.say("no credentials: every user of this machine has full access; --token-file restricts it")
	}
}

// roles parses --roles.
func (c *serveCmd) roles(s *session) (map[string]bool, error) {
	if _, err := s.delivery(); err != nil {
		return nil, err
	}
	known, shared := serveRoles, s.hints != nil && s.hints.shared
	roles := make(map[string]bool, len(known))
	if c.Roles == nil {
		return map[string]bool{roleAPI: true, roleReaper: true, roleCollector: true, rolePublisher: shared}, nil
	}
	for _, r := range c.Roles {
		if r = strings.TrimSpace(r); !slices.Contains(known, r) {
			return nil, badInput("", "--roles %q is not known%s; the roles are %s", r, didYouMean(r, known), join(known))
		}
		roles[r] = true
	}
	if len(roles) == 0 {
		return nil, badInput("", "--roles is empty; the roles are %s", join(known))
	}
	switch {
	case roles[rolePublisher] && s.hints == nil:
		return nil, badInput("Add --delivery redis://HOST:PORT, or leave the role out: workers find their tasks in the store.", "--roles publisher has no transport to send hints to")
	case roles[rolePublisher] && !shared && !roles[roleWorker]:
		return nil, badInput("Name a Redis with --delivery redis://HOST:PORT, or add the role worker.", "--roles publisher: the hints of --delivery memory reach workers of this process only")
	}
	return roles, nil
}

// credentials returns the configured credentials. An address that other machines can reach requires some.
func (c *serveCmd) credentials(s *session) (credentials, error) {
	who, err := s.loadCredentials(c.TokenFile, c.PasswordFile, c.CookieKeyFile)
	if err != nil {
		return who, err
	}
	who.proxies = c.TrustedProxy
	if who.hosts = c.AllowedHost; !who.open {
		return who, nil
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return who, badAddr("--addr", c.Addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return who, badInput(
			"Listen on 127.0.0.1, or require credentials: `"+s.app.Name+" token new NAME --access read --token-file tokens` creates a token and its line; then pass --token-file tokens.",
			"--addr %s: other machines can reach it, and there are no credentials", c.Addr)
	}
	return who, nil
}

func badAddr(flag, addr string, err error) error {
	return badInput("Write HOST:PORT, for example 127.0.0.1:8080; port 0 picks a free port.", "%s %q: %w", flag, addr, err)
}

// process holds the parts that serve and dev run concurrently. A nil part is left out.
type process struct {
	say    func(format string, args ...any)
	door   *door
	health *door // of --health
	eng    *weaver.Engine
	drain  time.Duration
	more   []part
}

// part is one concurrent part of a process. run returns after drain has ended; now ends when it must stop at once.
type part struct {
	name string
	run  func(drain, now context.Context) error
}

// run returns when all parts have ended: after an interrupt, or because one failed.
func (p *process) run(ctx context.Context) error {
	g := group.New(context.WithoutCancel(ctx))
	asked, stopListening := listen(ctx, g.Go)
	stopNote := context.AfterFunc(asked.drain, func() {
		p.health.draining()
		if isStoreGone(asked.drain) {
			return
		}
		p.say("stopping: running work may end within %s; interrupt again to stop it now", text.Setting(p.drain))
	})
	stopNow := context.AfterFunc(asked.now, func() {
		if !isStoreGone(asked.drain) {
			p.say("stopping now")
		}
		if p.eng != nil {
			p.eng.StopNow()
		}
	})
	parts := group.New(asked.drain)
	if p.eng != nil {
		parts.Go("engine", p.eng.Run)
		parts.Go("questions", func(ctx context.Context) error { return expireWhile(ctx, p.eng.Client) })
	}
	if p.door != nil {
		parts.Go("http", func(ctx context.Context) error { return p.door.serve(ctx, asked.now, p.drain) })
	}
	for _, m := range p.more {
		parts.Go(m.name, func(ctx context.Context) error { return m.run(ctx, asked.now) })
	}
	err := p.health.during(ctx, g.Go, parts.Wait)
	stopNote()
	stopNow()
	stopListening()
	return errors.Join(err, g.Wait())
}
