package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/schema"
)

// Behaviour of a client that exists only over HTTP.
func TestClientOverHTTP(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true, config: func(c *httpapi.Config) { c.MaxWait = 5 * time.Second }})
		ctx, c := t.Context(), s.over()
		type mailIn struct{ To string }
		mail := weaver.Define[mailIn, weaver.None]("acme.mail.send.v1")
		_, err := mail.Enqueue(ctx, c, mailIn{"ann"})
		var p *httpapi.Problem
		if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity {
			t.Errorf("a type that was not announced: %v", err)
		}
		s.is(err, nil, "acme.mail.send.v1", "start one that handles it")
		s.no(schema.Announce(ctx, s.client, weaver.Define[struct {
			To string `json:"To"`
			Cc string `json:"Cc"`
		}, weaver.None](mail.Name(), weaver.SchemaVersion(2))))
		_, err = mail.Enqueue(ctx, c, mailIn{"ann"})
		s.is(err, nil, "schema_version", "announced with 2")

		h, err := charge.Enqueue(ctx, c, chargeIn{Order: "x", Card: "4111"})
		s.no(err)
		s.is(c.Cancel(ctx, h.ID(), weaver.By("ops")), weaver.ErrInvalidOption, "actor")
		_, err = c.Rerun(ctx, h.ID(), weaver.RerunWith(weaver.Timeout(0)))
		s.is(err, weaver.ErrInvalidOption, "Timeout(0)")
		ran := s.later(time.Minute, func() { s.run() })
		began := time.Now()
		out, err := h.Wait(ctx)
		ran()
		s.no(err)
		if took := time.Since(began); out.Receipt != "r-x" || took > 62*time.Second {
			t.Errorf("of a server that waits less: %+v after %s", out, took)
		}
		got, err := charge.Get(ctx, c, h.ID())
		s.no(err)
		if got.Input.Card != "[redacted]" {
			t.Errorf("the card is %q", got.Input.Card)
		}
		list, _, err := charge.List(ctx, c, weaver.Filter{})
		s.no(err)
		s.is(list[0].DecodeError, nil, "Get")
		page, err := c.Search(ctx, "state:succeeded", weaver.Filter{Types: []string{charge.Name()}})
		s.no(err)
		if len(page.Items) != 1 || page.Scanned == 0 {
			t.Errorf("found %+v", page)
		}
		_, err = c.Search(ctx, "stat:failed", weaver.Filter{})
		s.is(err, ops.ErrInvalidQuery)
		if !errors.As(err, &p) || len(p.Errors) != 1 || p.Errors[0].Column == 0 {
			t.Errorf("a wrong query: %#v", p)
		}
		ask, err := charge.Enqueue(ctx, c, chargeIn{Order: "ask"})
		s.no(err)
		s.run()
		counted := &transport{answer: func(_ int32, r *http.Request) (*http.Response, error) { return s.http.Transport.RoundTrip(r) }}
		ended := s.later(20*time.Second, func() { s.no(s.client.Cancel(ctx, ask.ID())) })
		_, err = s.over(httpapi.HTTPClient(&http.Client{Transport: counted})).Wait(ctx, ask.ID(), weaver.WaitThroughBlocked())
		ended()
		if n := counted.sent.Load(); err == nil || n > 12 {
			t.Errorf("a wait through a block: %v, asked %d times", err, n)
		}
		drafts := make([]weaver.Draft, 1001)
		_, err = c.EnqueueTasks(ctx, drafts...)
		s.is(err, weaver.ErrTooLarge)
	})
}

// A client with less access sees less, and its errors say so.
func TestClientWithLessAccess(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{config: func(c *httpapi.Config) {
		c.Authorize = tokensOf(t, "ann full "+hashOf("ann's_token"), "bob submit,read "+hashOf("bob's_token"), "cy submit "+hashOf("cy's_token")).Authorize
	}})
	ctx := t.Context()
	h, err := charge.Enqueue(ctx, s.over(httpapi.Token("cy's_token")), chargeIn{Order: "x"})
	s.no(err)
	var p *httpapi.Problem
	if _, err = h.Wait(ctx); !errors.As(err, &p) || p.Status != http.StatusForbidden {
		t.Errorf("without read: %v", err)
	}
	s.run()
	_, err = charge.Wait(ctx, s.over(httpapi.Token("bob's_token")), h.ID())
	s.is(err, nil, "access payloads")
	_, err = charge.Get(ctx, s.over(httpapi.Token("bob's_token")), h.ID())
	s.is(err, nil, "access payloads")
	out, err := charge.Wait(ctx, s.over(httpapi.TokenFunc(func(context.Context) (string, error) { return "ann's_token", nil })), h.ID())
	s.no(err)
	if out.Receipt != "r-x" {
		t.Errorf("the output is %+v", out)
	}
	for _, o := range []httpapi.ClientOption{httpapi.Token("wrong"), httpapi.BasicAuth("ann", "secret")} {
		if _, err = s.over(o, httpapi.HTTPClient(new(http.Client))).Get(ctx, h.ID()); !errors.As(err, &p) || p.Status != http.StatusUnauthorized || strings.Contains(err.Error(), "secret") {
			t.Errorf("with wrong credentials: %v", err)
		}
	}
	_, err = s.over(httpapi.TokenFunc(func(context.Context) (string, error) { return "", io.ErrUnexpectedEOF })).Get(ctx, h.ID())
	s.is(err, io.ErrUnexpectedEOF, "token")
}
