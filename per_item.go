package weaver

import (
	"slices"

	"github.com/goweaver/weaver/internal/option"
)

// PerItem sets individual options for the tasks of an EnqueueMany: of returns the options of the i-th
// input, which override the common ones. An IdempotencyKey belongs here. In any other call it is
// ErrInvalidOption.
//
//	charge.EnqueueMany(ctx, client, orders, weaver.Priority(2), weaver.PerItem(func(i int) []weaver.EnqueueOption {
//		return []weaver.EnqueueOption{weaver.IdempotencyKey(orders[i].ID)}
//	}))
func PerItem(of func(i int) []EnqueueOption) EnqueueOption { return perItem(of) }

type perItem func(i int) []EnqueueOption

func (perItem) ApplyEnqueue(s *option.Settings) {
	s.Problem("PerItem: only EnqueueMany takes it")
}

// cutPerItem returns options without PerItem, and the function of PerItem.
func cutPerItem(opts []EnqueueOption) (rest []EnqueueOption, of func(i int) []EnqueueOption) {
	var own []perItem
	for _, o := range opts {
		if p, ok := o.(perItem); ok {
			own = append(own, p)
		}
	}
	if own == nil {
		return opts, nil
	}
	rest = slices.DeleteFunc(slices.Clone(opts), func(o EnqueueOption) bool { _, ok := o.(perItem); return ok })
	return rest, func(i int) (all []EnqueueOption) {
		for _, p := range own {
			if p == nil {
				all = append(all, nil) // reported as a nil option
				continue
			}
			all = append(all, p(i)...)
		}
		return all
	}
}
