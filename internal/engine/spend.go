package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goweaver/weaver/task"
)

// ErrSpendOutside: Spend was called outside a step; a cost is recorded with a step.
var ErrSpendOutside = errors.New("Spend outside of a step: the cost is written with the step that spent it, so call it inside the function of a Step, Do, StepTx or Cleanup")

// purse is the cost of one try of a step.
type purse struct {
	mu   sync.Mutex
	cost int64
	over bool // the try has ended
}

// Spend adds to the cost of the step that ctx belongs to.
func Spend(ctx context.Context, cost int64) error {
	if _, err := From(ctx); err != nil {
		return fmt.Errorf("spend: %w", err)
	}
	scope, ok := ctx.Value(stepKey{}).(*stepScope)
	if !ok {
		return ErrSpendOutside
	}
	p := &scope.purse
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return fmt.Errorf("spend in step %q: %w", scope.name, ErrAttemptOver)
	case cost < 0 || cost > task.MaxSpend-p.cost:
		return fmt.Errorf("spend %d micro-units in step %q: want 0 or more, and at most %d in one try of a step", cost, scope.name, int64(task.MaxSpend))
	}
	p.cost += cost
	return nil
}

// take ends the try and returns its cost.
func (p *purse) take() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	return p.cost
}

// recordedNew records that the attempt made a new record: it makes progress.
func (a *Attempt) recordedNew() {
	a.mu.Lock()
	a.news = true
	a.mu.Unlock()
}

// idleAttempts returns the number of consecutive attempts, this one included, without a new record.
func (a *Attempt) idleAttempts() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.news {
		return 0
	}
	return a.task.IdleAttempts + 1
}
