package sweep_test

import (
	"context"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
)

// large is too long for a row.
var large = strings.Repeat("large ", 20_000)

// bucketCases test values in the bucket and the removal of ended tasks.
var bucketCases = []testCase{largeValues("large values, until retention removes them", false), largeValues("large values on S3, until retention removes them", true)}

func largeValues(name string, s3 bool) testCase {
	return testCase{
		name:   name,
		bucket: true,
		s3:     s3,
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if in != large {
				fx.errorf("the input has %d bytes, want %d", len(in), len(large))
			}
			out, err := value(ctx, "grow", in+"!")
			return out + "!", err
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, large)
			succeeds(fx, h, large+"!!")
			unlock := fx.checker.lock.pass()
			fx.checker.goes = h.ID()
			unlock()
			sleep(fx.ctx, time.Minute)
			_, err := fx.client.Prune(fx.ctx, []weaver.Retention{weaver.Retain(30 * time.Second)})
			fx.must(err)
			_, err = fx.client.CollectArtifacts(fx.ctx)
			fx.must(err)
			if fx.point == "" { // bytes that a fault left unused stay for a day
				fx.must(fx.bucket.List(fx.ctx, "", func(i blob.Info) bool {
					fx.errorf("%s is left in the bucket", i.Key)
					return true
				}))
			}
		},
	}
}
