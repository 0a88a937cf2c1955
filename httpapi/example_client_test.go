package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/memstore"
)

// A program enqueues and waits over HTTP with the same task types as a program with the store.
func ExampleNewClient() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	greet := weaver.Define[string, string]("acme.text.greet.v1", weaver.NoRetry())

	// The server: a worker, which announces its task types, and the API.
	engine, err := weaver.New(memstore.New(), weaver.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Plugins: []weaver.Plugin{schema.Plugin()},
		Handlers: []weaver.Handler{greet.Handler(func(_ context.Context, name string) (string, error) {
			if name == "" {
				return "", errors.New("there is no name")
			}
			return "Hello, " + name, nil
		})},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := schema.Announce(ctx, engine, greet); err != nil { // before its start, for the example
		log.Fatal(err)
	}
	token, line := httpapi.NewToken("producer", httpapi.Submit|httpapi.Read|httpapi.Payloads)
	tokens, err := httpapi.ReadTokens(strings.NewReader(line)) // LoadTokens reads a file
	if err != nil {
		log.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{Client: engine.Client, Authorize: tokens.Authorize})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(api)
	defer server.Close()
	defer api.Stop()
	stopped := make(chan error)
	go func() { stopped <- engine.Run(ctx) }()

	// The client.
	client, err := httpapi.NewClient(server.URL, httpapi.Token(token))
	if err != nil {
		log.Fatal(err)
	}
	h, err := greet.Enqueue(ctx, client, "Ann", weaver.IdempotencyKey("greet-ann"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Wait(ctx))

	_, err = greet.EnqueueAndWait(ctx, client, "")
	var failed *weaver.TaskError
	fmt.Println(errors.As(err, &failed), failed.Message)

	_, err = client.Get(ctx, weaver.TaskID{1})
	fmt.Println(errors.Is(err, weaver.ErrNotFound))

	err = client.Cancel(ctx, h.ID())
	fmt.Println(err)

	cancel()
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
	// Output:
	// Hello, Ann <nil>
	// true there is no name
	// true
	// cancelTask needs the access read,operate, and "producer" has submit,read,payloads.
}
