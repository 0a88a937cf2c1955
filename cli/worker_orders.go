package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// roleTasks is the role of a worker that runs tasks.
const roleTasks = "tasks"

// roles reads --roles.
func (c *workerCmd) roles() (orders *ordersPart, tasks bool, err error) {
	known := []string{roleTasks, roleOrders}
	sends := false
	for _, r := range c.Roles {
		if r = strings.TrimSpace(r); !slices.Contains(known, r) {
			return nil, false, badInput("", "--roles %q is not known%s; the roles are %s", r, didYouMean(r, known), join(known))
		}
		tasks, sends = tasks || r == roleTasks, sends || r == roleOrders
	}
	switch {
	case !tasks && !sends:
		return nil, false, badInput("", "--roles names none; the roles are %s", join(known))
	case !sends:
		return nil, true, nil
	case tasks && c.UntilIdle:
		return nil, false, badInput("Run one after the other: a task may send an order, and an order wakes a task.", "--until-idle takes one of the roles tasks and orders")
	case !tasks && (len(c.Handlers) > 0 || len(c.Queue) > 0):
		return nil, false, badInput("Add tasks to --roles.", "--handlers and --queue are for the role tasks")
	}
	orders, err = ordersPartOf(true, &c.addressFlags)
	return orders, tasks, err
}

// sendOrders runs the role orders alone.
func (c *workerCmd) sendOrders(ctx context.Context, s *session, orders *ordersPart, door *door) error {
	return s.withWork(ctx, func(st store.Store) error {
		log := s.workLog()
		client, err := s.newClient(st, true)
		if err != nil {
			return err
		}
		if err := orders.open(s, client, c.DrainTimeout, s.errs); err != nil {
			return err
		}
		log.say("worker on %s, namespace %q", s.store(), s.flags.Namespace)
		orders.greet(false, log.say)
		s.warnOfNamespace(st, log.say)
		if err := door.openHealth(s, client); err != nil {
			return err
		}
		door.greetHealth(log.say)
		run := orders.worker.Run
		if c.UntilIdle {
			run = orders.worker.RunUntilIdle
		}
		err = s.untilGone(ctx, st, c.StoreGoneAfter, warnings(s.errs), func(ctx context.Context) error {
			g := group.New(context.WithoutCancel(ctx))
			asked, stopListening := listen(ctx, g.Go)
			stopNote := context.AfterFunc(asked.drain, func() {
				door.draining()
				if !isStoreGone(asked.drain) {
					log.say("stopping: sends may end within %s", text.Setting(c.DrainTimeout))
				}
			})
			err := door.during(ctx, g.Go, func() error { return run(asked.drain) })
			stopNote()
			stopListening()
			return errors.Join(err, g.Wait())
		})
		log.say("worker stopped")
		return err
	})
}
