package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store/sqlite"
)

// A call that is retried until the server accepts it, with the same
// Idempotency-Key each time.
func ExampleRequest() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s with a key: %t", r.Method, r.Header.Get("Idempotency-Key") != "")
	}))
	defer server.Close()

	ctx := context.Background()
	db, err := sqlite.OpenMemory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	engine, err := weaver.New(db, weaver.Config{Handlers: builtin.Handlers(builtin.Config{})})
	if err != nil {
		log.Fatal(err)
	}
	order, err := builtin.Request.Enqueue(ctx, engine, builtin.RequestInput{
		URL:    server.URL + "/orders",
		JSON:   json.RawMessage(`{"item": "tea"}`),
		Expect: []int{http.StatusCreated},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := engine.RunUntilIdle(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := order.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Status, out.Body)
	// Output: 201 POST with a key: true
}
