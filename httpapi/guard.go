package httpapi

import "net/http"

// Guard puts another handler under the API's authorization: h is called for requests of
// principals with the access, which it is told, and which another site's page did not
// send. name is what problems call it. All other requests are answered as the API's
// own are. What h allows beyond the access is its own to decide.
func (a *API) Guard(name string, access Access, h func(http.ResponseWriter, *http.Request, Principal)) http.Handler {
	rt := &route{id: name, access: access}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.recovered(w, r)
		secure(w.Header())
		c := &call{api: a, w: w, r: r, route: rt}
		if err := c.guarded(); err != nil {
			c.fail(err)
			return
		}
		h(w, r, c.who)
	})
}
