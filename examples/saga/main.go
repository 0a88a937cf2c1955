// Command saga takes an order through three partners: a payment service that answers late, a warehouse that refuses
// while it is closed, and mail, which cannot be undone:
//
//	go run ./examples/saga --order 7 --closed
//
// All effects of the order are undone before it fails: the last one first, once, and under keys by which a partner
// recognizes repeated calls. Kill the program at any moment: the same command continues. When the warehouse is open
// again, an operator retries the order:
//
//	go run ./examples/saga --order 7 --retry
//
// State, and the data of the partners, are in ./weaver-saga.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// Buy is the contract: the input is the number of the order.
var Buy = weaver.Define[int, string]("example.saga.buy.v1", weaver.NoRetry())

type program struct {
	dir    string
	late   time.Duration // delay of the payment service's answers
	closed bool          // whether the warehouse is closed
}

// buy charges, reserves, tells the customer, and ships.
func (p program) buy(ctx context.Context, order int) (string, error) {
	receipt, err := weaver.Step(ctx, "charge", func(ctx context.Context) (string, error) {
		return p.charge(ctx, order, weaver.Current(ctx).StepKey("charge"))
	}, weaver.Undo(func(_ context.Context, u weaver.Undoing[string]) error {
		// Also if the receipt is not recorded (!u.Done): calls with a void key are not charged, however late.
		return p.void("payment", "refund", u.Key)
	}))
	if err != nil {
		return "", err
	}
	err = weaver.Do(ctx, "reserve", func(ctx context.Context) error {
		return p.enter("warehouse", "reserve", weaver.Current(ctx).StepKey("reserve"))
	}, weaver.Undo(func(_ context.Context, u weaver.Undoing[weaver.None]) error {
		return p.void("warehouse", "unreserve", u.Key)
	}))
	if err != nil {
		return "", err
	}
	// A letter has no undo, as weaver why ID --undo shows. It is sent once, even if the order is retried.
	if err := weaver.Do(ctx, "mail", func(context.Context) error { fmt.Printf("mail: order %d is on its way\n", order); return nil }); err != nil {
		return "", err
	}
	if err := weaver.Do(ctx, "ship", func(context.Context) error {
		if p.closed {
			fmt.Println("warehouse: closed")
			return weaver.Permanent(errors.New("the warehouse is closed"))
		}
		fmt.Printf("warehouse: shipped order %d\n", order)
		return nil
	}); err != nil {
		return "", err
	}
	return receipt, nil
}

// charge is a partner that does its work and answers late.
func (p program) charge(ctx context.Context, order int, key string) (receipt string, err error) {
	if err := p.enter("payment", "charge", key); err != nil {
		return "", err
	}
	late := time.NewTimer(p.late)
	defer late.Stop()
	select {
	case <-late.C:
		return fmt.Sprintf("receipt of order %d", order), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// enter makes a partner do something under a key, once, unless the key is void.
func (p program) enter(partner, what, key string) error {
	fmt.Printf("%s: %s %s\n", partner, what, short(key))
	if _, err := os.Stat(p.file(partner, key, "void")); err == nil {
		return fmt.Errorf("%s: the key %s is void", partner, short(key))
	}
	return os.WriteFile(p.file(partner, key, "done"), nil, 0o600)
}

// void makes a partner undo the effect of a key and ignore later calls with it.
func (p program) void(partner, what, key string) error {
	fmt.Printf("%s: %s %s\n", partner, what, short(key))
	return os.WriteFile(p.file(partner, key, "void"), nil, 0o600)
}

func (p program) file(partner, key, what string) string {
	return filepath.Join(p.dir, partner+" "+strings.NewReplacer(":", " ", "/", " ").Replace(key)+"."+what)
}

// short returns a key without the task's ID.
func short(key string) string { _, step, _ := strings.Cut(key, ":"); return step }

func main() {
	var p program
	order, retry := 0, false
	flag.StringVar(&p.dir, "dir", "weaver-saga", "`folder` for the database and the data of the partners")
	flag.IntVar(&order, "order", 1, "`number` of the order")
	flag.BoolVar(&p.closed, "closed", false, "close the warehouse")
	flag.BoolVar(&retry, "retry", false, "retry a failed order")
	flag.DurationVar(&p.late, "late", 2*time.Second, "delay of the payment service")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := p.run(ctx, order, retry); err != nil {
		log.Fatalf("saga: %v", err)
	}
}

// run works on the order until its task has ended; the task is enqueued once.
func (p program) run(ctx context.Context, order int, retry bool) (err error) {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, filepath.Join(p.dir, "weaver.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{Buy.Handler(p.buy)}, CrashBudget: -1}) // kills are expected here
	if err := errors.Join(err, db.Migrate(ctx)); err != nil {
		return err
	}
	h, err := Buy.Enqueue(ctx, eng, order, weaver.IdempotencyKey(fmt.Sprint("order ", order)))
	if err == nil && retry {
		err = eng.Retry(ctx, h.ID())
	}
	if err != nil {
		return err
	}
	fmt.Printf("pid %d works on task %s: kill it at any moment (kill -9 %[1]d); the same command continues\n", os.Getpid(), h.ID())
	work, done := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer done()
		ended <- eng.Run(work)
	}()
	receipt, err := h.Wait(work)
	done()
	if err == nil {
		fmt.Println("bought:", receipt)
	}
	return errors.Join(err, <-ended)
}
