package weaver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestLinkArtifact(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[weaver.None, weaver.ArtifactRef]("acme.reports.link.v1", weaver.NoRetry())
	to := task.Link{URL: "https://example.com/a.csv?sig=1", Size: 3, SHA256: strings.Repeat("ab", 32)}
	subtest(t, "is kept once, without a bucket", func(fx *fixture) {
		runs := 0
		fx.run(typ.Handler(func(ctx context.Context, _ weaver.None) (weaver.ArtifactRef, error) {
			ref, err := weaver.LinkArtifact(ctx, "a.csv", to, weaver.TTL(time.Hour), weaver.ContentType("text/csv"))
			if err != nil {
				return ref, err
			}
			_, err = weaver.Step(ctx, "s", func(ctx context.Context) (weaver.ArtifactRef, error) {
				return weaver.LinkArtifact(ctx, "b.csv", task.Link{URL: "s3:bucket/b.csv"})
			})
			if runs++; err == nil && runs == 1 {
				return ref, weaver.RetryAfter(time.Second, errors.New("once more"))
			}
			return ref, err
		}))
		h := enqueue(fx, typ, weaver.None{}, weaver.MaxAttempts(2))
		ref := result(fx, h)
		list, err := fx.client.Artifacts(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "artifacts", len(list), 2)
		equal(fx, "reference", ref, list[0].Ref())
		equal(fx, "link", ref.Link, to)
		equal(fx, "step", list[1].Step, "s")
		equal(fx, "expiry", list[0].ExpiresAt.Sub(list[0].CreatedAt), time.Hour)
		_, err = fx.client.OpenArtifact(fx.Context(), ref)
		wantError(fx, err, weaver.ErrInvalidOption, `"a.csv"`, "is a link", "Link.URL")
	})
	for name, c := range map[string]struct {
		link task.Link
		want string
	}{
		"no URL":                {task.Link{}, "the URL is empty"},
		"no scheme":             {task.Link{URL: "a/secret-path"}, "has no scheme"},
		"a space":               {task.Link{URL: "https://example.com/a secret-path"}, "without spaces"},
		"a URL that is long":    {task.Link{URL: "https://example.com/" + strings.Repeat("x", task.MaxURL)}, "8192 are allowed"},
		"a negative size":       {task.Link{URL: "https://example.com", Size: -1}, "size of the linked bytes is -1"},
		"a hash that is no hex": {task.Link{URL: "https://example.com", SHA256: "xyz"}, "not a SHA-256"},
	} {
		subtest(t, "fails the task: "+name, func(fx *fixture) {
			fx.run(typ.Handler(func(ctx context.Context, _ weaver.None) (weaver.ArtifactRef, error) {
				return weaver.LinkArtifact(ctx, "a.csv", c.link)
			}))
			te := failure(fx, enqueue(fx, typ, weaver.None{}, weaver.MaxAttempts(5)))
			equal(fx, "attempts", te.Attempts, 1)
			wantError(fx, te, nil, c.want, `"a.csv"`)
			if strings.Contains(te.Error(), "secret-path") {
				fx.Errorf("the error shows the URL: %v", te)
			}
		})
	}
}
