// Command order buys through an exchange that times out after it has filled, answers 500 and drops
// connections:
//
//	go run ./examples/order --id 7
//	go run ./examples/order --id 7 --closed   # the vault is closed: the purchase is sold again
//
// The task reserves money, sends one durable order, and stores the coins. The exchange sees the same
// idempotency key in each send and fills it once. Kill the program at any moment: the same command
// continues. State is in ./weaver-order.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/ordertask"
	"github.com/goweaver/weaver/store/sqlite"
)

// Buy is the contract: the input is the number of the purchase.
var Buy = weaver.Define[int, string]("example.order.buy.v1", weaver.NoRetry())

type program struct {
	closed bool // whether the vault is closed
}

func (p program) buy(ctx context.Context, id int) (string, error) {
	err := weaver.Do(ctx, "reserve", say("reserve 100 for purchase %d", id), weaver.Undo(func(ctx context.Context, _ weaver.Undoing[weaver.None]) error {
		return say("give the 100 of purchase %d back", id)(ctx)
	}))
	if err != nil {
		return "", err
	}
	res, err := ordertask.Send(ctx, "buy", purchase(fmt.Sprintf("purchase-%d", id), order.Buy),
		ordertask.Undo(func(ctx context.Context, res order.ExecResult, _ string) error {
			return say("sell the %s of %s again", res.ExecutedQty, res.OrderID)(ctx)
		}))
	if err != nil {
		return "", err
	}
	err = weaver.Do(ctx, "store", func(ctx context.Context) error {
		if p.closed {
			return weaver.Permanent(errors.New("the vault is closed"))
		}
		return say("store %s", res.ExecutedQty)(ctx)
	})
	return fmt.Sprintf("bought %s at %s, reference %s", res.ExecutedQty, *res.AvgPrice, res.Broker.OrderRef), err
}

func purchase(id string, side order.Side) ordertask.Request {
	return ordertask.Order(order.OrderRequest{
		OrderID: id, Instrument: "BTC-JPY", Side: side, Qty: "0.5", TimeInForce: order.GoodTillCancelled,
	}, order.Orders{Timeout: 200 * time.Millisecond})
}

// say prints a line, as an effect that cannot fail.
func say(format string, args ...any) func(context.Context) error {
	return func(context.Context) error {
		fmt.Printf(format+"\n", args...)
		return nil
	}
}

// exchange is the flaky partner. It remembers keys in a folder, as it would in its own database.
type exchange struct {
	dir string

	mu    sync.Mutex
	calls int
}

// ServeHTTP fills an order once per key: POST sends it, GET asks for a key.
func (x *exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	file := filepath.Join(x.dir, order.KeyHash(key)+".json")
	answer, err := os.ReadFile(file)
	known := err == nil
	if r.Method == http.MethodGet {
		if !known || path.Base(r.URL.Path) != key {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(answer) // a client that is gone asks again
		return
	}
	x.calls++
	if !known && x.calls%4 == 1 {
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	if !known {
		var req order.OrderRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, "not an order", http.StatusBadRequest)
			return
		}
		fmt.Printf("the exchange fills %s\n", req.OrderID)
		answer = fmt.Appendf(nil, `{"fills": [{"px": "100", "qty": %q, "ts": %q}], "avg_price": "100", "executed_qty": %q, "order_ref": "X-1"}`,
			req.Qty, time.Now().UTC().Format(time.RFC3339), req.Qty)
		if err := os.WriteFile(file, answer, 0o600); err != nil {
			http.Error(w, "no room", http.StatusInternalServerError)
			return
		}
		select { // filled, and no answer in time
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
		return
	}
	_, _ = w.Write(answer)
}

func run(ctx context.Context, dir string, id int, p program) (string, error) {
	partner := filepath.Join(dir, "exchange")
	if err := os.MkdirAll(partner, 0o700); err != nil {
		return "", err
	}
	server := httptest.NewServer(&exchange{dir: partner})
	defer server.Close()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "app.db"))
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }() // everything is committed
	if err := db.Migrate(ctx); err != nil {
		return "", err
	}
	eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{Buy.Handler(p.buy)}})
	if err != nil {
		return "", err
	}
	adapter, err := order.NewHTTP(order.HTTPConfig{URL: server.URL})
	if err != nil {
		return "", err
	}
	orders, err := order.NewWorker(order.WorkerConfig{Store: db, Adapter: adapter, Config: order.Config{Backoff: []time.Duration{300 * time.Millisecond}}})
	if err != nil {
		return "", err
	}
	work, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { report(eng.Run(work)) })
	running.Go(func() { report(orders.Run(work)) })
	defer running.Wait()
	defer stop()
	h, err := Buy.Enqueue(ctx, eng, id, weaver.IdempotencyKey(fmt.Sprint(id)))
	if err != nil {
		return "", err
	}
	return h.Wait(ctx)
}

func report(err error) {
	if err != nil {
		log.Println(err)
	}
}

func main() {
	id := flag.Int("id", 1, "number of the purchase")
	closed := flag.Bool("closed", false, "the vault is closed")
	dir := flag.String("dir", "weaver-order", "folder of the state")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, err := run(ctx, *dir, *id, program{closed: *closed})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
}
