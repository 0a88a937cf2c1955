package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/sealorder"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/httpapi"
	orders "github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
)

// The contract of the orders' routes, on each database.
func TestOrders(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, st store.Store) {
		s := orderServer(t, st)
		for _, c := range []struct {
			name string
			test func(*server)
		}{
			{"T-101", t101},
			{"T-102", t102},
			{"T-201", t201},
			{"T-202", t202},
			{"T-203", t203},
			{"T-301", t301},
			{"T-302", t302},
			{"T-303", t303},
			{"T-401", t401},
		} {
			t.Run(c.name, func(t *testing.T) {
				sub := *s
				sub.T = t
				c.test(&sub)
			})
		}
	})
}

// The cases by their names, alone.
func TestT101_FirstIs201ResendIs200(t *testing.T) { t.Parallel(); t101(orderServer(t, onSQLite(t))) }

func TestT102_OtherRequestIs409(t *testing.T) { t.Parallel(); t102(orderServer(t, onSQLite(t))) }

func TestT201_KeyMismatchIs422(t *testing.T) { t.Parallel(); t201(orderServer(t, onSQLite(t))) }

func TestT202_QtyBelowMinimumIs422(t *testing.T) { t.Parallel(); t202(orderServer(t, onSQLite(t))) }

func TestT203_InstrumentNotAllowedIs422(t *testing.T) {
	t.Parallel()
	t203(orderServer(t, onSQLite(t)))
}

func TestT301_BrokerTimeoutIs504(t *testing.T) { t.Parallel(); t301(orderServer(t, onSQLite(t))) }

func TestT302_BrokerDownIs503(t *testing.T) { t.Parallel(); t302(orderServer(t, onSQLite(t))) }

func TestT303_BrokerRejectedIs400(t *testing.T) { t.Parallel(); t303(orderServer(t, onSQLite(t))) }

func TestT401_ResendAfter201Is200(t *testing.T) { t.Parallel(); t401(orderServer(t, onSQLite(t))) }

func t101(s *server) {
	first := s.sendOrder(orderOf("101")).want(http.StatusCreated)
	again := orderOf("101", "requested_at", "2026-01-02T03:04:05Z", "trace_id", "t-2", "qty", json.Number("0.5"))
	if a := s.sendOrder(again).want(http.StatusOK); !bytes.Equal(a.body, first.body) {
		s.Errorf("the resend answers %s, the first request %s", a.body, first.body)
	}
	var ack httpapi.OrderAck
	first.into(&ack)
	if ack != (httpapi.OrderAck{Status: "accepted", OrderID: "o-101", IdempotencyKey: "101", TraceID: "t-1"}) {
		s.Errorf("%+v", ack)
	}
}

func t102(s *server) {
	s.sendOrder(orderOf("102")).want(http.StatusCreated)
	if got := s.sendOrder(orderOf("102", "qty", "0.51")).refusal(http.StatusConflict, "IDEMPOTENCY_CONFLICT"); got.IdempotencyKey != "102" {
		s.Errorf("%+v", got)
	}
	s.work(&orders.Paper{})
	s.sendOrder(orderOf("102", "qty", "0.51")).refusal(http.StatusConflict, "IDEMPOTENCY_CONFLICT")
}

func t201(s *server) {
	body := orderOf("201")
	for name, headers := range map[string][]string{
		"other": {"Idempotency-Key", "201-b"}, "missing": nil, "empty": {"Idempotency-Key", ""}, "twice": {"Idempotency-Key", "201", "Idempotency-Key", "201"},
		"not ASCII": {"Idempotency-Key", "\xff201"},
	} {
		if got := s.post("/do/order", body, headers...).refusal(http.StatusUnprocessableEntity, "IDEMPOTENCY_MISMATCH"); got.Fields != nil {
			s.Errorf("%s: %+v", name, got)
		}
	}
	if _, found := s.ledger("201"); found {
		s.Error("a refused order is stored")
	}
}

func (s *server) wantField(body map[string]any, field, part string) {
	s.Helper()
	got := s.sendOrder(body).refusal(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
	if len(got.Fields) != 1 || got.Fields[0].Field != field || !strings.Contains(got.Fields[0].Message, part) {
		s.Errorf("%+v, want %s: …%s…", got, field, part)
	}
	if _, found := s.ledger(body["idempotency_key"].(string)); found {
		s.Error("a refused order is stored")
	}
}

func t202(s *server) { s.wantField(orderOf("202", "qty", "0.04"), "qty", "below the minimum") }

func t203(s *server) {
	s.wantField(orderOf("203", "instrument", "DOGE-JPY"), "instrument", "not on the list")
}

func t301(s *server) {
	s.sendOrder(orderOf("301")).want(http.StatusCreated)
	s.work(partner("timeout"))
	got := s.sendOrder(orderOf("301")).result(http.StatusGatewayTimeout, orders.ReasonTimeout)
	if len(got.Warnings) != 1 || got.Warnings[0] != orders.WarnUnknown {
		s.Errorf("the warnings of an unknown outcome are %v", got.Warnings)
	}
}

func t302(s *server) {
	s.sendOrder(orderOf("302")).want(http.StatusCreated)
	s.work(partner("down"))
	s.sendOrder(orderOf("302")).result(http.StatusServiceUnavailable, orders.ReasonDown)
}

func t303(s *server) {
	s.sendOrder(orderOf("303")).want(http.StatusCreated)
	s.work(partner("reject"))
	s.sendOrder(orderOf("303")).result(http.StatusBadRequest, orders.ReasonRejected)
}

func t401(s *server) {
	ack := s.sendOrder(orderOf("401")).want(http.StatusCreated)
	if a := s.sendOrder(orderOf("401")).want(http.StatusOK); !bytes.Equal(a.body, ack.body) {
		s.Errorf("%s, then %s", ack.body, a.body)
	}
	s.work(&orders.Paper{})
	settled := s.sendOrder(orderOf("401"))
	if got := settled.result(http.StatusOK, ""); got.ExecutedQty != "0.5" || got.OrderID != "o-401" || got.TraceID != "t-1" {
		s.Errorf("%s", settled.body)
	}
	if a := s.sendOrder(orderOf("401", "trace_id", "t-9")); !bytes.Equal(a.body, settled.body) {
		s.Errorf("%s, then %s", settled.body, a.body)
	}
	var entry orders.Entry
	s.get("/do/order/401?wait=1s").want(http.StatusOK).into(&entry)
	if entry.State != orders.LedgerSucceeded || entry.HTTPStatus != 200 || len(entry.Result) == 0 {
		s.Errorf("%+v", entry)
	}
	s.get("/do/order/no-such").problem(http.StatusNotFound, "not-found")
	s.get("/do/webhook/401").problem(http.StatusNotFound, "not-found")
}

// T-402: the file is closed and opened anew between the request and its resend.
func TestT402_ResendAfterRestartIs200(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weaver.db")
	open := func() (*sqlite.DB, *server) {
		db, err := sqlite.Open(t.Context(), path)
		if err == nil {
			err = db.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return db, orderServer(t, db)
	}
	db, s := open()
	ack := s.sendOrder(orderOf("402")).want(http.StatusCreated)
	s.api.Stop()
	s.no(db.Close())

	db, s = open()
	if a := s.sendOrder(orderOf("402")).want(http.StatusOK); !bytes.Equal(a.body, ack.body) {
		t.Errorf("%s, then %s", ack.body, a.body)
	}
	s.work(&orders.Paper{})
	settled := s.sendOrder(orderOf("402")).want(http.StatusOK)
	s.api.Stop()
	s.no(db.Close())

	db, s = open()
	defer func() { _ = db.Close() }()
	if a := s.sendOrder(orderOf("402")).want(http.StatusOK); !bytes.Equal(a.body, settled.body) {
		t.Errorf("%s, then %s", settled.body, a.body)
	}
}

// Ten clients send one order 100 times at once to three handlers of one store.
func TestOrderInParallel(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, st store.Store) {
		var apis []*server
		for range 3 {
			apis = append(apis, orderServer(t, st))
		}
		s := apis[0]
		body := orderText(t, "same")
		round := func() (created int, bodies map[string]int) {
			bodies = make(map[string]int)
			var mu sync.Mutex
			var wg sync.WaitGroup
			for client := range 10 {
				wg.Go(func() {
					for i := range 10 {
						a := apis[(client+i)%3].post("/do/order", body, "Idempotency-Key", "same")
						mu.Lock()
						if a.status == http.StatusCreated {
							created++
						} else if a.status != http.StatusOK {
							t.Errorf("%d: %s", a.status, a.body)
						}
						bodies[string(a.body)]++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			return created, bodies
		}
		if created, bodies := round(); created != 1 || len(bodies) != 1 {
			t.Errorf("%d of 100 answers are 201, with %d bodies", created, len(bodies))
		}
		paper := &orders.Paper{}
		s.work(paper)
		if created, bodies := round(); created != 0 || len(bodies) != 1 {
			t.Errorf("%d of 100 answers after it was settled are 201, with %d bodies", created, len(bodies))
		}
		if s.rows() != 1 || paper.Executed() != 1 {
			t.Errorf("%d ledger rows, %d orders of the partner", s.rows(), paper.Executed())
		}
	})
}

// Wrong input is refused with the path of its field, and writes nothing.
func TestWrongOrders(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	s := orderServer(t, st)
	good := orderText(t, "k", "qty", "0.5")
	with := func(old, new string) string {
		changed := strings.Replace(good, old, new, 1)
		if changed == good {
			t.Fatalf("%s is not in %s", old, good)
		}
		return changed
	}
	long := strings.Repeat("k", 300)
	for _, c := range []struct{ name, key, body, field string }{
		{"NUL", "k", with(`"o-k"`, `"o\u0000k"`), "order_id"},
		{"lone surrogate", "k", with(`"o-k"`, `"o\ud800k"`), "order_id"},
		{"lone low surrogate in a tag", "k", with(`"side"`, `"tags":["a","\udc00"],"side"`), "tags[1]"},
		{"1e400", "k", with(`"0.5"`, `1e400`), "qty"},
		{"exponent", "k", with(`"0.5"`, `5e-1`), "qty"},
		{"NaN", "k", with(`"0.5"`, `"NaN"`), "qty"},
		{"too many digits", "k", with(`"0.5"`, `"0.1234567890123456789"`), "qty"},
		{"off the step by less than a float sees", "k", with(`"0.5"`, `"0.500000000000000001"`), "qty"},
		{"zero", "k", with(`"0.5"`, `0`), "qty"},
		{"negative", "k", with(`"0.5"`, `-0.5`), "qty"},
		{"price zero", "k", with(`null`, `"0.000"`), "price"},
		{"duplicate key", "k", with(`"side"`, `"qty":"1","side"`), "qty"},
		{"duplicate key with an escape", "k", with(`"side"`, `"\u0071ty":"1","side"`), "qty"},
		{"other case", "k", with(`"side"`, `"Side"`), "Side"},
		{"unknown field", "k", with(`"side"`, `"leverage":2,"side"`), "leverage"},
		{"unknown field inside", "k", with(`"side"`, `"risk_constraints":{"max":1},"side"`), "risk_constraints.max"},
		{"side", "k", with(`BUY`, `HOLD`), "side"},
		{"time in force", "k", with(`GTC`, `DAY`), "time_in_force"},
		{"no object", "k", `[]`, ""},
		{"empty body", "k", ``, ""},
		{"two values", "k", good + good, ""},
		{"not UTF-8", "k", with(`o-k`, "o\xff"), ""},
		{"deep", "k", with(`"o-k"`, strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), ""},
		{"key of 300 characters", long, strings.ReplaceAll(good, `"k"`, `"`+long+`"`), "idempotency_key"},
		{"key with a line break", "k", strings.ReplaceAll(good, `"k"`, `"k\r\nX-Evil: 1"`), "idempotency_key"},
		{"key that is not ASCII", "k", strings.ReplaceAll(good, `"k"`, `"ключ"`), "idempotency_key"},
		{"no key", "k", strings.Replace(good, `"idempotency_key":"k",`, ``, 1), "idempotency_key"},
		{"an hour ahead", "k", orderText(t, "k", "requested_at", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)), "requested_at"},
		{"no time", "k", orderText(t, "k", "requested_at", "yesterday"), "requested_at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := (&answer{t: t}).of(s, c.body, c.key).refusal(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
			if len(got.Fields) == 0 || c.field != "" && got.Fields[0].Field != c.field {
				t.Errorf("%+v, want the field %q", got, c.field)
			}
		})
	}
	s.post("/do/order", `{"order_id":"`+strings.Repeat("x", 2<<20)+`"}`, "Idempotency-Key", "k").problem(http.StatusRequestEntityTooLarge, "body-too-large")
	s.post("/do/order", good, "Idempotency-Key", "k", "Content-Type", "text/plain").problem(http.StatusUnsupportedMediaType, "unsupported-media-type")
	if res := s.raw("POST /do/order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: k\rX: 1\r\nContent-Length: 2\r\n\r\n{}"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a key with a line break in the header: %d", res.StatusCode)
	}
	if n := s.rows(); n != 0 {
		t.Errorf("%d ledger rows of refused orders", n)
	}
	// A number that no float keeps is kept.
	s.sendOrder(orderOf("exact", "qty", json.Number("12345678901234567890.01"))).want(http.StatusCreated)
	if o, _ := s.ledger("exact"); !strings.Contains(string(o.Row.Body), `"qty":"12345678901234567890.01"`) {
		t.Errorf("%s", o.Row.Body)
	}
}

// of posts a body for a subtest.
func (a *answer) of(s *server, body, key string) *answer {
	sub := *s
	sub.T = a.t
	return sub.post("/do/order", body, "Idempotency-Key", key)
}

// A client over its rate waits; another one does not.
func TestOrderRate(t *testing.T) {
	t.Parallel()
	s := orderServer(t, memstore.New(), func(cfg *httpapi.Config) {
		cfg.Authorize = tokensOf(t, "ann full "+hashOf("a"), "ben full "+hashOf("b")).Authorize
		cfg.Orders.RatePerMin = 3
	})
	send := func(token string, key string) *answer {
		return s.post("/do/order", orderOf(key), "Idempotency-Key", key, "Authorization", "Bearer "+token)
	}
	for i := range 3 {
		send("a", "r"+strconv.Itoa(i)).want(http.StatusCreated)
	}
	a := send("a", "r3")
	got := a.refusal(http.StatusTooManyRequests, "RATE_LIMITED")
	if got.RetryAfter < 1 || got.RetryAfter > 81 || a.header.Get("Retry-After") != strconv.Itoa(got.RetryAfter) {
		t.Errorf("%+v, Retry-After %q", got, a.header.Get("Retry-After"))
	}
	send("b", "r3").want(http.StatusCreated)
}

// What each access may do with orders.
func TestOrderAccess(t *testing.T) {
	t.Parallel()
	s := orderServer(t, memstore.New(), func(cfg *httpapi.Config) {
		cfg.Authorize = tokensOf(t, "sends submit "+hashOf("s"), "reads read "+hashOf("r"), "sees payloads "+hashOf("p")).Authorize
	})
	as := func(token string) []string {
		return []string{"Idempotency-Key", "k", "Authorization", "Bearer " + token}
	}
	s.post("/do/order", orderOf("k"), as("s")...).want(http.StatusCreated)
	s.post("/do/order", orderOf("k"), as("r")...).problem(http.StatusForbidden, "forbidden")
	s.work(&orders.Paper{})
	s.post("/do/order", orderOf("k"), as("s")...).result(http.StatusOK, "") // the sender's own answer
	s.get("/do/order/k", as("s")[2:]...).problem(http.StatusForbidden, "forbidden")
	var entry orders.Entry
	if s.get("/do/order/k", as("r")[2:]...).want(http.StatusOK).into(&entry); entry.Result != nil || entry.State != orders.LedgerSucceeded {
		t.Errorf("without payloads: %+v", entry)
	}
	if s.get("/do/order/k", as("p")[2:]...).want(http.StatusOK).into(&entry); entry.Result == nil {
		t.Errorf("with payloads: %+v", entry)
	}
}

// A request that waits is answered with the result, and wakes the worker of its process.
func TestOrderWait(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	w, err := orders.NewWorker(orders.WorkerConfig{Store: st, Adapter: &orders.Paper{}, Config: orders.Config{PollInterval: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	s := orderServer(t, st, func(cfg *httpapi.Config) { cfg.Orders.Wake = w.Wake })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	a := s.post("/do/order?wait=30s", orderOf("w"), "Idempotency-Key", "w")
	a.result(http.StatusOK, "")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.post("/do/order?wait=20ms", orderOf("v"), "Idempotency-Key", "v").want(http.StatusCreated)
	s.post("/do/order?wait=31s", orderOf("u"), "Idempotency-Key", "u").problem(http.StatusBadRequest, "bad-query")
	if _, found := s.ledger("u"); found {
		t.Error("an order with a wrong wait is stored")
	}
	s.get("/do/order/v?wait=20ms").want(http.StatusOK)
}

func TestWebhookRoute(t *testing.T) {
	t.Parallel()
	s := orderServer(t, memstore.New())
	body := `{"url":"https://example.org/hook","headers":{"X-Kind":"paid"},"body":{"n":1.50},"idempotency_key":"h"}`
	first := s.post("/do/webhook", body, "Idempotency-Key", "h").want(http.StatusCreated)
	if a := s.post("/do/webhook", body, "Idempotency-Key", "h").want(http.StatusOK); !bytes.Equal(a.body, first.body) {
		t.Errorf("%s, then %s", first.body, a.body)
	}
	s.post("/do/webhook", strings.Replace(body, "https", "file", 1), "Idempotency-Key", "h").refusal(http.StatusUnprocessableEntity, "VALIDATION_ERROR")
	s.get("/do/webhook/h").want(http.StatusOK)
	s.sendOrder(orderOf("h")).refusal(http.StatusConflict, "IDEMPOTENCY_CONFLICT")
}

// awayStore fails to accept.
type awayStore struct {
	orders.Store
	err error
}

func (s awayStore) AcceptOrders(context.Context, string, orders.Tx, ...orders.New) ([]orders.Accepted, error) {
	return nil, s.err
}

// A store that is away is told from one whose answer is not known, and neither is told in detail.
func TestOrderStoreAway(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{"nothing was accepted": store.ErrUnavailable, "it is not known": store.ErrUnknown, "not known whether": errors.New("odd")} {
		s := orderServer(t, memstore.New(), func(cfg *httpapi.Config) {
			cfg.Orders.Store = awayStore{memstore.New(), fmt.Errorf("open /secret/path: %w", err)}
		})
		a := s.sendOrder(orderOf("k"))
		if got := a.refusal(http.StatusServiceUnavailable, "INTERNAL_ERROR"); !strings.Contains(got.Message, want) || strings.Contains(got.Message, "secret") || a.header.Get("Retry-After") == "" {
			t.Errorf("%v: %+v", err, got)
		}
		if log := s.log.String(); !strings.Contains(log, "secret") || strings.Contains(log, "o-k") {
			t.Errorf("the log is %s", log)
		}
	}
}

// sealedWith makes the API's client seal with a key.
func sealedWith(t *testing.T, st store.Store, c codec.Codec) func(*httpapi.Config) {
	return func(cfg *httpapi.Config) {
		client, err := weaver.NewClient(st, weaver.ClientConfig{Codec: c})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Client = client
	}
}

// With a Codec a request and its result are sealed at rest, and a repetition is still known; a
// server without the key says so instead of showing what is stored.
func TestSealedOrders(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	made, err := aesgcm.NewKey("k1")
	if err != nil {
		t.Fatal(err)
	}
	key, err := aesgcm.New(made)
	if err != nil {
		t.Fatal(err)
	}
	s := orderServer(t, st, sealedWith(t, st, key))
	s.sendOrder(orderOf("k")).want(http.StatusCreated)
	s.sendOrder(orderOf("k")).want(http.StatusOK)
	if o, _ := s.ledger("k"); strings.Contains(string(o.Row.Body), "BTC-JPY") {
		t.Errorf("the store has %s", o.Row.Body)
	}
	client, err := weaver.NewClient(st, weaver.ClientConfig{Codec: key})
	s.no(err)
	opened, _ := sealorder.Of(client.OpenStore())
	w, err := orders.NewWorker(orders.WorkerConfig{Store: opened, Adapter: &orders.Paper{}})
	s.no(err)
	s.no(w.RunUntilIdle(t.Context()))
	if got := s.sendOrder(orderOf("k")).result(http.StatusOK, ""); got.Instrument != "BTC-JPY" {
		t.Errorf("%+v", got)
	}
	if o, _ := s.ledger("k"); strings.Contains(string(o.Entry.Result), "BTC-JPY") {
		t.Errorf("the store has %s", o.Entry.Result)
	}
	blind := orderServer(t, st)
	blind.sendOrder(orderOf("k")).refusal(http.StatusInternalServerError, "INTERNAL_ERROR")
}

// Without Config.Orders there is no route.
func TestOrdersOff(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	s.sendOrder(orderOf("k")).problem(http.StatusNotFound, "no-route")
	_, err := httpapi.New(httpapi.Config{Authorize: httpapi.Open(httpapi.Principal{}), Orders: &httpapi.OrderConfig{RatePerMin: -1}})
	if err == nil || !strings.Contains(err.Error(), "Orders.Store") || !strings.Contains(err.Error(), "Orders.RatePerMin") {
		t.Errorf("New: %v", err)
	}
}
