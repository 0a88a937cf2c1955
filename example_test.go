package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// The task types of the examples. Producers and workers share them.
var (
	Greet = weaver.Define[string, string]("example.mail.greet.v1")
	Add   = weaver.Define[[]int, int]("example.math.add.v1")
)

func greet(_ context.Context, name string) (string, error) { return "Hello, " + name + "!", nil }

// memory opens an empty store.
func memory() *sqlite.DB {
	ctx := context.Background()
	db, err := sqlite.OpenMemory(ctx)
	if err == nil {
		err = db.Migrate(ctx)
	}
	if err != nil {
		panic(err)
	}
	return db
}

// work runs all due tasks.
func work(ctx context.Context, db store.Store, handlers ...weaver.Handler) {
	eng, err := weaver.New(db, weaver.Config{Handlers: handlers})
	if err == nil {
		err = eng.RunUntilIdle(ctx)
	}
	if err != nil {
		panic(err)
	}
}

// A complete program: one process that enqueues and works.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	db, err := sqlite.OpenMemory(ctx) // or sqlite.Open(ctx, "app.db")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		panic(err)
	}
	eng, err := weaver.New(db, weaver.Config{
		Handlers: []weaver.Handler{Greet.Handler(greet)},
	})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- eng.Run(ctx) }()

	h, err := Greet.Enqueue(ctx, eng, "Ann")
	if err != nil {
		panic(err)
	}
	text, err := h.Wait(ctx)
	fmt.Println(text, err)

	stop() // Run drains and returns
	fmt.Println(<-done)
	// Output:
	// Hello, Ann! <nil>
	// <nil>
}

// Types are package variables; a bad name panics when the program starts.
func ExampleDefine() {
	charge := weaver.Define[int, string]("acme.billing.charge.v1",
		weaver.MaxAttempts(3), weaver.Backoff(time.Second), weaver.Timeout(time.Minute), weaver.Queue("billing"))
	fmt.Println(charge.Name())

	defer func() { fmt.Println("panic") }()
	defer func() { _ = recover() }()
	weaver.Define[int, string]("charge")
	// Output:
	// acme.billing.charge.v1
	// panic
}

// A step that completed is never run again for its task.
func ExampleStep() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	attempt := 0
	handler := Greet.Handler(func(ctx context.Context, name string) (string, error) {
		attempt++
		fmt.Println("attempt", attempt)
		text, err := weaver.Step(ctx, "look up", func(context.Context) (string, error) {
			fmt.Println("looking up", name)
			return "Dear " + name, nil
		})
		if err != nil {
			return "", err
		}
		if attempt == 1 {
			return "", weaver.RetryAfter(0, errors.New("the mail server is down"))
		}
		return text, nil
	})
	h, _ := Greet.Enqueue(ctx, must(weaver.NewClient(db, weaver.ClientConfig{})), "Ann")
	work(ctx, db, handler)
	fmt.Println(h.Wait(ctx))
	// Output:
	// attempt 1
	// looking up Ann
	// attempt 2
	// Dear Ann <nil>
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A flaky call is retried inside the attempt.
func ExampleStepRetry() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	tries := 0
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Ann"))
	work(ctx, db, Greet.Handler(func(ctx context.Context, name string) (string, error) {
		return weaver.Step(ctx, "call", func(context.Context) (string, error) {
			if tries++; tries < 3 {
				return "", errors.New("connection reset")
			}
			return "answered", nil
		}, weaver.StepRetry(5, time.Millisecond))
	}))
	fmt.Println(must(h.Wait(ctx)), "after", tries, "tries and", must(h.Get(ctx)).AttemptCount, "attempt")
	// Output: answered after 3 tries and 1 attempt
}

// A partner's answer may be an error and still be final.
func ExampleRecordError() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	attempt := 0
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Ann"))
	work(ctx, db, Greet.Handler(func(ctx context.Context, name string) (string, error) {
		err := weaver.Do(ctx, "charge", func(context.Context) error {
			fmt.Println("charging")
			return errors.New("card refused")
		}, weaver.RecordError())
		if attempt++; attempt == 1 {
			return "", weaver.RetryAfter(0, errors.New("something else broke"))
		}
		var refused *task.StepError
		if errors.As(err, &refused) {
			return "no charge: " + refused.Message, nil
		}
		return "charged", err
	}))
	fmt.Println(h.Wait(ctx))
	// Output:
	// charging
	// no charge: card refused <nil>
}

// A task that sleeps costs nothing: no goroutine, no slot, no attempt.
func ExampleSleep() {
	ctx, stop := context.WithCancel(context.Background())
	db := memory()
	defer db.Close()
	eng := must(weaver.New(db, weaver.Config{Handlers: []weaver.Handler{
		Greet.Handler(func(ctx context.Context, name string) (string, error) {
			night := func(context.Context) error { fmt.Println("good night,", name); return nil }
			if err := weaver.Do(ctx, "night", night); err != nil {
				return "", err
			}
			if err := weaver.Sleep(ctx, "cool-down", 20*time.Millisecond); err != nil {
				return "", err // the handler runs again from the top at the wake time; recorded steps do not
			}
			return "good morning, " + name, nil
		}),
	}}))
	done := make(chan error)
	go func() { done <- eng.Run(ctx) }()
	fmt.Println(Greet.EnqueueAndWait(ctx, eng, "Ann"))
	stop()
	fmt.Println(<-done)
	// Output:
	// good night, Ann
	// good morning, Ann <nil>
	// <nil>
}

// Deferred functions that undo effects check whether the task only waits.
func ExampleSuspended() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	must(Greet.Enqueue(ctx, client, "Ann"))
	work(ctx, db, Greet.Handler(func(ctx context.Context, name string) (out string, err error) {
		defer func() {
			switch {
			case weaver.Suspended(err):
				fmt.Println("see you tomorrow")
			case err != nil:
				fmt.Println("undo")
			}
		}()
		return "", weaver.Sleep(ctx, "until tomorrow", 24*time.Hour)
	}))
	// Output: see you tomorrow
}

// Start enqueues another task exactly once, however often the handler runs.
func ExampleStart() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	must(Add.Enqueue(ctx, client, []int{1, 2}))
	work(ctx, db,
		Add.Handler(func(ctx context.Context, ns []int) (int, error) {
			sum := 0
			for _, n := range ns {
				sum += n
			}
			_, err := weaver.Start(ctx, "tell Ann", Greet, fmt.Sprint("Ann: ", sum))
			return sum, err
		}),
		Greet.Handler(func(_ context.Context, text string) (string, error) {
			fmt.Println("mail to", text)
			return "", nil
		}))
	// Output: mail to Ann: 3
}

// The same event, delivered twice, creates one task.
func ExampleIdempotencyKey() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	for range 2 {
		h := must(Greet.Enqueue(ctx, client, "Ann", weaver.IdempotencyKey("webhook-evt-456")))
		fmt.Println(h.Disposition())
	}
	// Output:
	// created
	// existing
}

// Tasks of one customer run one after the other, whatever their types.
func ExampleConcurrencyKey() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	for _, name := range []string{"Ann", "Bob", "Cid"} {
		must(Greet.Enqueue(ctx, client, name, weaver.ConcurrencyKey("customer-7")))
	}
	work(ctx, db, Greet.Handler(func(_ context.Context, name string) (string, error) {
		fmt.Println("begin", name)
		fmt.Println("end", name)
		return "", nil
	}))
	// Output:
	// begin Ann
	// end Ann
	// begin Bob
	// end Bob
	// begin Cid
	// end Cid
}
