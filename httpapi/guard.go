package httpapi

import (
	"bytes"
	"io"
	"net/http"
)

// Guard puts another handler under the API's authorization. It calls h with requests of principals
// with the access, unless the page of another site sent them. name is the handler's name in
// problems. Guard answers all other requests like the API's own, and also bodies that are too long
// or too slow: h gets complete bodies. h decides itself about permissions beyond the access. The
// context of its requests ends after Config.Timeout, and soon after the API has stopped.
func (a *API) Guard(name string, access Access, h func(http.ResponseWriter, *http.Request, Principal)) http.Handler {
	rt := &route{id: name, access: access, maxBody: a.cfg.MaxInput}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = a.from(r)
		out := a.begin(w, r)
		defer out.forget()
		defer a.recovered(out, r)
		c := &call{api: a, w: out, r: r, route: rt}
		defer c.release()
		if err := c.guarded(); err != nil {
			c.fail(err)
			return
		}
		var body []byte
		if r.ContentLength != 0 {
			var err error
			if body, err = c.body(); err != nil {
				c.fail(err)
				return
			}
		}
		ctx, cancel := c.context()
		defer cancel()
		r = r.WithContext(ctx)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		h(out, r, c.who)
	})
}

// guarded checks the sender and the origin of the request.
func (c *call) guarded() error {
	if err := c.authorize(); err != nil {
		return err
	}
	if err := c.api.origin.Check(c.r); err != nil {
		return crossOrigin.of("%s: send it from a page of this server, or from a program.", err)
	}
	return nil
}
