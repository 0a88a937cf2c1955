package httpapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	orders "github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// do gives a verb of orders and returns its acknowledgement.
func (s *server) orderVerb(key, verb string, body any) (ack orders.Ack) {
	s.Helper()
	s.post("/v1/orders/"+key+"/"+verb, body).want(http.StatusOK).into(&ack)
	return ack
}

// Each verb of an operator, with its audit entry.
func TestOrderVerbs(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, st store.Store) {
		s := orderServer(t, st)
		for _, key := range []string{"a", "b/c", "d", "lost"} {
			s.sendOrder(orderOf(key)).want(http.StatusCreated)
		}
		s.orderVerb("a", "withdraw", reasonGiven)
		s.post("/v1/orders/a/withdraw", nil).want(http.StatusOK)
		if ack := s.orderVerb("a", "requeue", reasonGiven); ack.State != orders.Pending {
			t.Errorf("%+v", ack)
		}
		s.post("/v1/orders/a/requeue", nil).problem(http.StatusConflict, "state")
		s.post("/v1/orders/none/requeue", nil).problem(http.StatusNotFound, "not-found")

		if ack := s.bulkOrders("hold", reasonGiven); ack.Changed != 4 {
			t.Errorf("%+v", ack)
		}
		var page httpapi.Page[orders.Order]
		if s.get("/v1/orders?held=true&status=pending,failed&limit=10").want(http.StatusOK).into(&page); len(page.Items) != 4 {
			t.Errorf("%d orders are held", len(page.Items))
		}
		for _, key := range []string{"a", "b%2Fc", "d", "lost"} {
			s.orderVerb(key, "release", nil)
		}
		s.post("/v1/orders/a/release", nil).problem(http.StatusConflict, "state")

		for _, wrong := range []string{`{}`, `{"failed":"NO_SUCH"}`, `{"failed":"BROKER_DOWN","result":{}}`, `{"result":{"executed_qty":"1","fills":[]}}`, `{"result":{"idempotency_key":"x"}}`} {
			s.post("/v1/orders/b%2Fc/settle", wrong).problem(http.StatusUnprocessableEntity, "invalid-body")
		}
		s.orderVerb("b%2Fc", "settle", `{"failed":"BROKER_REJECTED","reason":"by phone"}`)
		s.post("/v1/orders/b%2Fc/resubmit", `{"new_key":"b/c"}`).problem(http.StatusUnprocessableEntity, "invalid-body")
		s.post("/v1/orders/b%2Fc/resubmit", `{"new_key":"e","body":{"qty":0}}`).problem(http.StatusUnprocessableEntity, "invalid-body")
		s.orderVerb("b%2Fc", "resubmit", `{"new_key":"e","reason":"once more"}`)
		if o, _ := s.ledger("e"); o.Row.State != orders.Pending || o.Row.Ref != "o-b/c" {
			t.Errorf("%+v", o)
		}
		s.orderVerb("b%2Fc", "settle", `{"result":{"fills":[{"px":"100","qty":"0.5","ts":"2026-01-02T03:04:05Z"}],"executed_qty":"0.5"},"reason":"they have it"}`)
		s.sendOrder(orderOf("b/c")).result(http.StatusOK, "")

		s.no(orderStore(t, st).JoinOrders(t.Context(), weaver.DefaultNamespace, orders.WorkerInfo{ID: "w", Name: "w", Lease: time.Minute}))
		got, err := orderStore(t, st).ClaimOrders(t.Context(), weaver.DefaultNamespace, orders.ClaimRequest{Worker: "w", Lease: time.Microsecond, Limit: 1, MaxAttempts: 1})
		s.no(err)
		if ack := s.orderVerb(got.Claimed[0].Key, "unlock", reasonGiven); ack.State != orders.Pending {
			t.Errorf("%+v", ack)
		}
		s.work(partner("drop"))
		s.post("/v1/orders/lost/requeue", nil).problem(http.StatusConflict, "state")
		var story struct{ Summary string }
		if s.get("/v1/orders/lost/why").want(http.StatusOK).into(&story); !strings.Contains(story.Summary, "its outcome is unknown") {
			t.Errorf("%+v", story)
		}
		s.orderVerb("lost", "requeue", `{"confirmed":true,"reason":"asked"}`)
		var stats orders.Stats
		if s.get("/v1/stats/orders").want(http.StatusOK).into(&stats); stats.Counts[orders.Succeeded] != 1 || stats.Ledger != 5 {
			t.Errorf("%+v", stats)
		}
		var audit httpapi.Page[store.AuditEntry]
		s.get("/v1/audit?target=order%2Fb%2Fc").want(http.StatusOK).into(&audit)
		if len(audit.Items) != 4 || audit.Items[0].Actor != "ann" || audit.Items[0].Reason != "they have it" {
			t.Errorf("the audit has %+v", audit.Items)
		}
		for _, wrong := range []string{"status=lost", "held=maybe", "task=x", "after=x", "limit=0"} {
			s.get("/v1/orders?" + wrong).want(http.StatusBadRequest)
		}
	})
}

func (s *server) bulkOrders(verb string, body any) (ack orders.Ack) {
	s.Helper()
	s.post("/v1/bulk/orders/"+verb, body).want(http.StatusOK).into(&ack)
	return ack
}

// The verbs for all orders, each with one audit entry.
func TestOrderBulkVerbs(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, st store.Store) {
		s := orderServer(t, st)
		for _, key := range []string{"a", "b", "c"} {
			s.sendOrder(orderOf(key)).want(http.StatusCreated)
		}
		s.bulkOrders("hold", reasonGiven)
		if ack := s.bulkOrders("release", reasonGiven); ack.Changed != 3 {
			t.Errorf("released %+v", ack)
		}
		s.no(orderStore(t, st).JoinOrders(t.Context(), weaver.DefaultNamespace, orders.WorkerInfo{ID: "bulk", Name: "bulk", Lease: time.Minute}))
		_, err := orderStore(t, st).ClaimOrders(t.Context(), weaver.DefaultNamespace, orders.ClaimRequest{Worker: "bulk", Lease: time.Microsecond, Limit: 2, MaxAttempts: 1})
		s.no(err)
		if ack := s.bulkOrders("unlock", reasonGiven); ack.Changed != 2 || ack.More {
			t.Errorf("unlocked %+v", ack)
		}
		for _, key := range []string{"a", "b"} {
			s.orderVerb(key, "withdraw", nil)
		}
		if ack := s.bulkOrders("prune", nil); ack.Changed != 0 {
			t.Errorf("pruned %+v", ack)
		}
		if ack := s.bulkOrders("prune", `{"aborted":true}`); ack.Changed != 0 {
			t.Errorf("pruned aborted orders of today: %+v", ack)
		}
		later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		for range 2 {
			if ack := s.bulkOrders("prune", `{"aborted":true,"limit":1,"before":"`+later+`","reason":"done"}`); ack.Changed != 1 {
				t.Errorf("pruned %+v", ack)
			}
		}
		for _, wrong := range []string{`{"limit":501}`, `{"limit":-1}`, `{"before":"` + later + `"}`} {
			s.post("/v1/bulk/orders/prune", wrong).problem(http.StatusUnprocessableEntity, "invalid-body")
		}
		var audit httpapi.Page[store.AuditEntry]
		s.get("/v1/audit?target=order%2F*").want(http.StatusOK).into(&audit)
		var verbs []string
		for _, e := range audit.Items {
			verbs = append(verbs, e.Verb)
		}
		if want := []string{"order_prune", "order_prune", "order_unlock", "order_release", "order_hold"}; !slices.Equal(verbs, want) || audit.Items[0].Actor != "ann" || audit.Items[0].Reason != "done" {
			t.Errorf("the audit has %v: %+v", verbs, audit.Items)
		}
	})
}

// A key may hold every visible character: its path is escaped once.
func TestOrderKeysInPaths(t *testing.T) {
	t.Parallel()
	s := orderServer(t, memstore.New())
	for _, key := range []string{
		"a/b", "//", "a//b", "/../x", "../x", "a/.", "...", "..a", "a%2Fb", "%2F", "%2e", "%", "%zz", "?q=1#f", "a/why", "why", "{key}", "a;b", "a+b",
		`!"#$%&'()*+,-./0123456789:;<=>?@ABCXYZ[\]^_` + "`abcxyz{|}~",
	} {
		s.sendOrder(orderOf(key)).want(http.StatusCreated)
		at := url.PathEscape(key)
		var entry orders.Entry
		if s.get("/do/order/" + at).want(http.StatusOK).into(&entry); entry.Key != key {
			t.Errorf("%q: the entry of %q", key, entry.Key)
		}
		s.get("/v1/orders/" + at + "/why").want(http.StatusOK)
		var o orders.Order
		if s.get("/v1/orders/" + at).want(http.StatusOK).into(&o); o.Row.Key != key {
			t.Errorf("%q: the order of %q", key, o.Row.Key)
		}
		if ack := s.orderVerb(at, "withdraw", nil); ack.Entry.Key != key || ack.Changed != 1 {
			t.Errorf("%q: %+v", key, ack)
		}
	}
	for _, key := range []string{".", "..", "/"} {
		if a := s.sendOrder(orderOf(key)).want(http.StatusUnprocessableEntity); !strings.Contains(string(a.body), "which no URL can name") {
			t.Errorf("%s", a.body)
		}
		s.get("/do/order/" + strings.NewReplacer(".", "%2E", "/", "%2F").Replace(key)).want(http.StatusNotFound)
	}
}

// Values need payloads, verbs need operate; a partner that can be asked settles an order instead of
// a second send.
func TestOrderVerbAccess(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	paper := &orders.Paper{Behave: func(orders.Outgoing) string { return "lost" }}
	s := orderServer(t, st, func(cfg *httpapi.Config) {
		cfg.Authorize = tokensOf(t, "all full "+hashOf("f"), "reads read "+hashOf("r"), "operates operate "+hashOf("o")).Authorize
		cfg.Orders.Adapter = paper
	})
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	s.post("/do/order", orderOf("k"), append(as("f"), "Idempotency-Key", "k")...).want(http.StatusCreated)
	s.work(sender{paper})
	if a := s.get("/v1/orders/k", as("r")...).want(http.StatusOK); strings.Contains(string(a.body), "BTC-JPY") {
		t.Errorf("without payloads: %s", a.body)
	}
	if a := s.get("/v1/orders/k", as("f")...).want(http.StatusOK); !strings.Contains(string(a.body), "BTC-JPY") {
		t.Errorf("with payloads: %s", a.body)
	}
	s.post("/v1/orders/k/requeue", reasonGiven, as("r")...).problem(http.StatusForbidden, "forbidden")
	s.post("/v1/bulk/orders/hold", reasonGiven, as("r")...).problem(http.StatusForbidden, "forbidden")
	var ack orders.Ack
	if s.post("/v1/orders/k/requeue", reasonGiven, as("o")...).want(http.StatusOK).into(&ack); ack.State != orders.Succeeded || ack.Entry.Result != nil {
		t.Errorf("%+v", ack)
	}
	var audit httpapi.Page[store.AuditEntry]
	if s.get("/v1/audit?target=order%2Fk", as("f")...).want(http.StatusOK).into(&audit); len(audit.Items) != 1 || audit.Items[0].Actor != "operates" || audit.Items[0].Verb != "order_settle" {
		t.Errorf("the audit has %+v", audit.Items)
	}
	if a := s.get("/do/order/k", as("f")...).want(http.StatusOK); !strings.Contains(string(a.body), `"executed_qty":"0.5"`) {
		t.Errorf("%s", a.body)
	}
}
