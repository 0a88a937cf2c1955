package weaver_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task/event"
)

// An interrupted reader resumes after its last event.
func ExampleClient_Events() {
	ctx := context.Background()
	db := memstore.New()
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		panic(err)
	}
	if err := client.KeepEvents(ctx, 7*24*time.Hour); err != nil {
		panic(err)
	}
	mail := weaver.Define[string, weaver.None]("acme.mail.send.v1")
	if _, err := mail.Enqueue(ctx, client, "ann@example.com"); err != nil {
		panic(err)
	}
	eng, err := weaver.New(db, weaver.Config{Logger: slog.New(slog.DiscardHandler), Handlers: []weaver.Handler{
		mail.Handler(func(context.Context, string) (weaver.None, error) { return weaver.None{}, nil }),
	}})
	if err != nil {
		panic(err)
	}
	if err := eng.RunUntilIdle(ctx); err != nil {
		panic(err)
	}

	cursor := event.FeedOldest // store it with the results of the events
	for n := range 2 {
		for ev, err := range client.Events(ctx, event.FeedRequest{After: cursor}) {
			if err != nil {
				panic(err)
			}
			fmt.Println(n, ev.Event.Type())
			cursor = ev.Cursor
			if ev.Event.Type() == "task.started" || ev.Event.Type() == "task.succeeded" {
				break // interrupted
			}
		}
	}
	// Output:
	// 0 task.enqueued
	// 0 task.started
	// 1 task.succeeded
}
