package httpapi_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

// The verbs of limits are those of weaver.Client.
func TestClientsLimit(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		const name = "label:tenant=a/b c"
		s.no(s.c.SetLimit(ctx, name, weaver.Limit{Starts: 10, Per: time.Minute, Burst: 3, Running: 2, Weight: 4}, weaver.Reason("month end")))
		s.no(s.c.SetLimit(ctx, "queue:billing", weaver.Limit{Pending: 7}))
		got, err := s.c.Limit(ctx, name)
		if err != nil || got.Starts != 10 || got.Per != "1m0s" || got.Burst != 3 || got.Running != 2 || got.Weight != 4 || got.Reason != "month end" {
			s.Errorf("the limit is %+v, %v", got, err)
		}
		list, err := s.c.Limits(ctx, "", 1)
		s.no(err)
		rest, err := s.c.Limits(ctx, name, 0)
		s.no(err)
		if len(list) != 1 || list[0].Name != name || len(rest) != 1 || rest[0].Pending != 7 {
			s.Errorf("the pages are %+v and %+v", list, rest)
		}
		s.is(s.c.SetLimit(ctx, "billing", weaver.Limit{Running: 1}), weaver.ErrInvalidOption, "want queue:NAME")
		s.is(s.c.SetLimit(ctx, "queue:q", weaver.Limit{}), weaver.ErrInvalidOption, "limits nothing")
		s.no(s.c.DeleteLimit(ctx, name))
		s.is(s.c.DeleteLimit(ctx, name), weaver.ErrNotFound)
		_, err = s.c.Limit(ctx, name)
		s.is(err, weaver.ErrNotFound)
	})
}
