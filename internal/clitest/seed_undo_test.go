package clitest_test

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

var orderType = weaver.Define[int, string]("acme.demo.order.v1", weaver.Queue("work"), weaver.NoRetry())

// order reserves and packs goods (a point of no return), and then charges and mails. A negative n sleeps for a day
// then, 0 succeeds, and for any other n there is no courier. The partner of n = 2 refuses refunds.
func order(ctx context.Context, n int) (string, error) {
	nothing := func(context.Context) error { return nil }
	undo := func(err error) weaver.StepOption {
		return weaver.Undo(func(context.Context, weaver.Undoing[weaver.None]) error { return err })
	}
	var refund error
	if n == 2 {
		refund = weaver.Permanent(errors.New("no such account"))
	}
	err := weaver.Do(ctx, "reserve", nothing, undo(nil))
	if err == nil {
		err = weaver.PointOfNoReturn(ctx, "packed")
	}
	if err == nil {
		err = weaver.Do(ctx, "charge", nothing, undo(refund))
	}
	if err == nil {
		err = weaver.Do(ctx, "mail", nothing)
	}
	switch {
	case err == nil && n < 0:
		err = weaver.Sleep(ctx, "courier", 24*time.Hour)
	case err == nil && n > 0:
		err = weaver.Do(ctx, "ship", func(context.Context) error { return errors.New("courier down") }, undo(nil))
	}
	return "shipped", err
}

// ordered runs the task of an order.
func ordered(name string, n int) func(w *fixture) map[string]task.ID {
	return func(w *fixture) map[string]task.ID {
		h, err := orderType.Enqueue(w.ctx, w.client, n)
		w.check(err)
		w.work()
		return w.one(name, h.ID(), nil)
	}
}
