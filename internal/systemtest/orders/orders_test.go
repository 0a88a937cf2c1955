package orders_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
)

const ns = "default"

// size is the length of a storm.
type size struct {
	orders   int
	kill     time.Duration // between kills
	kills    int           // most of them
	restarts int           // of a database server
}

// sizeOf returns the size of a storm of a number of orders, unless WEAVER_ORDERS is another number.
func sizeOf(t *testing.T, orders int) size {
	t.Helper()
	if testing.Short() {
		t.Skip("make test runs this")
	}
	text := os.Getenv("WEAVER_ORDERS")
	if text == "" {
		return size{orders: orders, kill: 250 * time.Millisecond, kills: 6, restarts: 1}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 100 {
		t.Fatalf("WEAVER_ORDERS is %q: want a number of orders of at least 100, or nothing", text)
	}
	return size{orders: n, kill: time.Second, kills: n, restarts: 5}
}

// TestOrders_KillsOnSQLite runs a storm on one file.
func TestOrders_KillsOnSQLite(t *testing.T) {
	size := sizeOf(t, 1000)
	t.Parallel()
	for _, asks := range []bool{true, false} {
		t.Run(fmt.Sprint("reconciler ", asks), func(t *testing.T) {
			dir := t.TempDir()
			s := &storm{T: t, size: size, config: config{Store: filepath.Join(dir, "weaver.db"), Locks: dir, Asks: asks}, triggers: []string{
				`CREATE TABLE settled (idempotency_key TEXT, old TEXT, new TEXT, unknown INTEGER)`,
				`CREATE TRIGGER settles AFTER UPDATE ON weaver_idempo_ledger WHEN old.status <> new.status OR old.result_digest IS NOT new.result_digest
BEGIN INSERT INTO settled VALUES (new.idempotency_key, old.status, new.status, coalesce(old.unknown, 0)); END`,
			}}
			s.run()
		})
	}
}

// TestOrders_KillsOnPostgres runs a storm on a server that is restarted.
func TestOrders_KillsOnPostgres(t *testing.T) {
	size := sizeOf(t, 300)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for _, asks := range []bool{true, false} {
		t.Run(fmt.Sprint("reconciler ", asks), func(t *testing.T) {
			s := &storm{T: t, size: size, server: server, config: config{Store: server.Database(), Locks: t.TempDir(), Asks: asks}, triggers: []string{
				`CREATE TABLE settled (idempotency_key TEXT, old TEXT, new TEXT, unknown BIGINT)`,
				`CREATE FUNCTION settles() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
INSERT INTO public.settled VALUES (new.idempotency_key, old.status, new.status, coalesce(old.unknown, 0)); RETURN NULL; END $$`,
				`CREATE TRIGGER settles AFTER UPDATE ON weaver.weaver_idempo_ledger FOR EACH ROW
WHEN (old.status <> new.status OR old.result_digest IS DISTINCT FROM new.result_digest) EXECUTE FUNCTION settles()`,
			}}
			s.run()
		})
	}
}

// storm accepts orders while workers are killed.
type storm struct {
	*testing.T
	size     size
	config   config
	server   *pgtest.Server // nil: SQLite
	triggers []string       // record each settlement of an entry in the table settled

	db      database
	sql     *sql.DB
	partner *partner
	workers []*process
	starts  int
}

func (s *storm) run() {
	ctx, cancel := context.WithTimeoutCause(s.Context(), time.Duration(s.size.orders)*20*time.Millisecond+15*time.Minute, errors.New("the orders were not settled in time"))
	defer cancel()
	s.partner = newPartner(s.T)
	s.config.Partner = s.partner.url
	s.open(ctx)
	defer func() {
		if err := s.db.Close(); err != nil {
			s.Error(err)
		}
	}()
	for range processes {
		s.workers = append(s.workers, s.start())
	}
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(ctx) }()
	kills, restarts := s.disturb(ctx, accepted)
	for _, w := range s.workers {
		w.end()
	}
	if s.Failed() {
		return
	}
	s.check(ctx)
	_, said := s.partner.state()
	s.Logf("%d kills, %d restarts; the partner's answers: %s", kills, restarts, said)
	if kills == 0 || s.server != nil && restarts == 0 {
		s.Error("nothing was killed, or the server was not restarted")
	}
}

func (s *storm) open(ctx context.Context) {
	s.Helper()
	var err error
	if s.db, err = open(ctx, &s.config); err != nil {
		s.Fatal(err)
	}
	if err := s.db.Migrate(ctx); err != nil {
		s.Fatal(err)
	}
	switch db := s.db.(type) {
	case *sqlite.DB:
		s.sql = db.DB()
	case *postgres.DB:
		s.sql = db.DB()
	}
	for _, stmt := range s.triggers {
		if _, err := s.sql.ExecContext(ctx, stmt); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *storm) start() *process {
	s.starts++
	return start(s.T, &s.config, fmt.Sprint("stderr-", s.starts))
}

func key(n int) string { return fmt.Sprint("order-", n) }

// accept accepts all orders, in batches. Each batch repeats one order of the batch before.
func (s *storm) accept(ctx context.Context) error {
	const batch = 25
	profile := order.Orders{Timeout: timeout}
	for n := 0; n < s.size.orders; n += batch {
		reqs := make([]order.New, 0, batch+1)
		for i := max(0, n-1); i < min(n+batch, s.size.orders); i++ {
			body, err := json.Marshal(map[string]any{
				"order_id": key(i), "instrument": "BTC-JPY", "side": "BUY", "qty": "0.5", "price": nil, "time_in_force": "GTC",
				"idempotency_key": key(i), "requested_at": time.Now().UTC(),
			})
			if err != nil {
				return err
			}
			parsed, err := profile.Parse(body, time.Now())
			if err != nil {
				return err
			}
			reqs = append(reqs, parsed.New(profile))
		}
		for {
			got, err := s.db.AcceptOrders(ctx, ns, nil, reqs...)
			if err == nil {
				for _, a := range got {
					if a.Err != nil {
						return a.Err
					}
				}
				break
			}
			if !away(err) {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// disturb kills workers, and restarts the server, until all orders are settled.
func (s *storm) disturb(ctx context.Context, accepted <-chan error) (kills, restarts int) {
	kill := time.NewTicker(s.size.kill)
	defer kill.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	all := false
	for {
		select {
		case <-ctx.Done():
			s.Fatalf("%v: %+v", context.Cause(ctx), s.stats(context.WithoutCancel(ctx)))
		case err := <-accepted:
			if err != nil {
				s.Fatalf("accept: %v", err)
			}
			all = true
		case <-kill.C:
			if kills == s.size.kills {
				break
			}
			w := &s.workers[kills%len(s.workers)]
			(*w).kill()
			*w = s.start()
			kills++
			if s.server != nil && restarts < s.size.restarts && kills%3 == 2 {
				s.server.Stop([]pgtest.Mode{pgtest.Immediate, pgtest.Fast}[restarts%2])
				s.server.Start()
				restarts++
			}
		case <-look.C:
			got := s.stats(ctx)
			if all && got.Counts[order.Pending]+got.Counts[order.Sending]+got.Counts[order.Retrying] == 0 {
				return kills, restarts
			}
		}
	}
}

func (s *storm) stats(ctx context.Context) order.Stats {
	s.Helper()
	for {
		got, err := s.db.OrderStats(ctx, ns)
		if err == nil {
			return got
		}
		if !away(err) {
			s.Fatal(err)
		}
	}
}

// check compares the ledger with the partner.
func (s *storm) check(ctx context.Context) {
	s.Helper()
	executed, _ := s.partner.state()
	counts := make(map[string]int)
	for after := ""; ; {
		page, next, err := s.db.ListOrders(ctx, ns, order.Filter{After: after, Limit: 1000})
		if err != nil {
			s.Fatal(err)
		}
		for i := range page {
			o := &page[i]
			// Listed rows have no result.
			if o.Row.State == order.Aborted {
				if *o, err = s.db.GetOrder(ctx, ns, o.Row.Key); err != nil {
					s.Fatal(err)
				}
			}
			kind := string(o.Row.State)
			if o.Entry.Unknown {
				kind += ", unknown"
			}
			counts[kind]++
			if why := wrong(o, executed[o.Row.Key]); why != "" {
				s.Errorf("%s: %s\n%+v", o.Row.Key, why, o)
			}
			delete(executed, o.Row.Key)
		}
		if after = next; after == "" {
			break
		}
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total != s.size.orders || len(executed) > 0 {
		s.Errorf("%d orders of %d are stored; the partner executed %d others", total, s.size.orders, len(executed))
	}
	s.settledOnce(ctx, total)
	s.Logf("%v", counts)
	if counts["succeeded"] == 0 {
		s.Error("no order succeeded")
	}
}

// wrong says what is wrong with a settled order.
func wrong(o *order.Order, executed bool) string {
	switch o.Row.State {
	case order.Succeeded:
		if o.Entry.State != order.LedgerSucceeded || o.Entry.HTTPStatus != 200 {
			return "the ledger does not say so"
		}
		if !executed {
			return "the partner has not executed it"
		}
		return ""
	case order.Aborted:
		var res order.ExecResult
		if err := json.Unmarshal(o.Entry.Result, &res); err != nil {
			return "its result: " + err.Error()
		}
		reasons := []order.ReasonCode{order.ReasonTimeout, order.ReasonDown, order.ReasonInternal}
		switch {
		case o.Entry.State != order.LedgerFailed || res.Status != order.Failed:
			return "the ledger does not say so"
		case !slices.Contains(reasons, res.ReasonCode) || string(res.ReasonCode) != o.Row.LastErrorCode || o.Row.LastErrorMsg == "" ||
			o.Entry.HTTPStatus != res.ReasonCode.HTTPStatus():
			return "it does not explain itself"
		case o.Entry.Unknown != slices.Contains(res.Warnings, order.WarnUnknown):
			return "its warnings do not say whether its outcome is unknown"
		case executed && !o.Entry.Unknown:
			return "the partner has executed it, and no doubt is recorded"
		}
		return ""
	}
	return "it is not settled"
}

// settledOnce reads the settlements that the trigger recorded: one per order, but for a success that came after an
// abort with an unknown outcome.
func (s *storm) settledOnce(ctx context.Context, orders int) {
	s.Helper()
	rows, err := s.sql.QueryContext(ctx, "SELECT idempotency_key, old, new, unknown FROM settled")
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	first := make(map[string]int)
	for rows.Next() {
		var k, from, to string
		var unknown int
		if err := rows.Scan(&k, &from, &to, &unknown); err != nil {
			s.Fatal(err)
		}
		switch {
		case from == "accepted":
			first[k]++
		case from == "failed" && to == "succeeded" && unknown == 1: // the partner's truth
		default:
			s.Errorf("%s was settled again: %s to %s", k, from, to)
		}
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	for k, n := range first {
		if n != 1 {
			s.Errorf("%s was settled %d times", k, n)
		}
	}
	if len(first) != orders {
		s.Errorf("%d orders of %d were settled", len(first), orders)
	}
}
