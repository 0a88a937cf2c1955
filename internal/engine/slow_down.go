package engine

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

// slowDown asks the limit that a handler named to rest, before the end of its attempt is written. It is a hint for
// other tasks: if it is lost, they learn by their own errors.
func (c *completer) slowDown(a *Attempt, err error) {
	var v *Verdict
	if !errors.As(err, &v) || v.Rest == "" || v.Delay <= 0 || !c.Store.Capabilities().Has(store.CanLimit) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.held), slowDownLimit)
	defer cancel()
	got, err := c.Store.Operate(ctx, c.Namespace, store.Rest{Name: v.Rest, For: min(v.Delay, rules.MaxRest)})
	if err == nil {
		err = got[0].Err
	}
	if err != nil {
		a.logger().Warn("a limit could not be asked to rest", "limit", v.Rest, "for", v.Delay, "error", err)
	}
}

// slowDownLimit is the timeout of a request to rest.
const slowDownLimit = 5 * time.Second
