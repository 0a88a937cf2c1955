package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/typo"
	"github.com/goweaver/weaver/task"
)

// call is one request.
type call struct {
	api         *API
	w           http.ResponseWriter
	r           *http.Request
	route       *route
	who         Principal
	conditional bool // it has an If-Match

	releases []func() // for the shares that its body holds until the response
}

// context returns the request's context. It also ends after Config.Timeout, and soon after the API
// has stopped, with the cause errStopping.
func (c *call) context() (context.Context, context.CancelFunc) {
	limited, cancel := context.WithTimeout(c.r.Context(), c.api.cfg.Timeout)
	ctx, end := context.WithCancelCause(limited)
	forget := context.AfterFunc(c.api.over, func() { end(errStopping) })
	return ctx, func() {
		forget()
		end(nil)
		cancel()
	}
}

// write writes a JSON response.
func (c *call) write(status int, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(buf.Bytes()) // an error means that the client has disconnected
	return nil
}

// path returns a path parameter.
func (c *call) path(name string) string { return c.r.PathValue(name) }

// id parses the path parameter id. A malformed ID is reported as not found.
func (c *call) id() (task.ID, error) {
	id, err := task.ParseID(c.path("id"))
	if err != nil {
		p := notFound.of("There is nothing with this id.")
		p.Errors = []ProblemError{{Parameter: "id", Detail: err.Error()}}
		return id, p
	}
	return id, nil
}

// badParam returns a problem with one parameter.
func badParam(name, format string, args ...any) error {
	p := badQuery.of("The parameter %s is wrong.", name)
	p.Errors = []ProblemError{{Parameter: name, Detail: fmt.Sprintf(format, args...)}}
	return p
}

// checkTexts rejects path parameters and headers that stores do not accept as text: UTF-8 without
// NUL. checkQuery checks the query, and decode checks bodies.
func (c *call) checkTexts() error {
	for _, name := range c.route.names() {
		if err := checkParam(name, c.path(name)); err != nil {
			return err
		}
	}
	for _, p := range c.route.params {
		if p.in != "header" || c.route.ownKey && p.name == "Idempotency-Key" {
			continue
		}
		for _, text := range c.r.Header.Values(p.name) {
			if err := checkParam(p.name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkParam rejects a parameter that stores do not accept as text.
func checkParam(name, text string) error {
	switch {
	case strings.ContainsRune(text, 0):
		return badParam(name, "%.40q contains a NUL byte", text)
	case !utf8.ValidString(text):
		return badParam(name, "%.40q is not UTF-8", text)
	}
	return nil
}

// checkQuery rejects unknown and repeated query parameters.
func (c *call) checkQuery() error {
	values, err := urlQuery(c.r)
	if err != nil {
		return badQuery.of("The query cannot be read: %s.", err)
	}
	var known []string
	for _, p := range c.route.params {
		if p.in == "query" {
			known = append(known, p.name)
		}
	}
	for name, list := range values {
		i := slices.IndexFunc(c.route.params, func(p param) bool { return p.in == "query" && p.name == name })
		switch {
		case i < 0 && len(known) == 0:
			return badParam(name, "%s takes no parameters", c.route.id)
		case i < 0:
			hint := ""
			if near := nearest(name, known); near != "" {
				hint = fmt.Sprintf(" (did you mean %s?)", near)
			}
			return badParam(name, "there is no such parameter%s; there are %s", hint, strings.Join(known, ", "))
		case len(list) > 1 && !c.route.params[i].many:
			return badParam(name, "it is given %d times", len(list))
		}
		for _, text := range list {
			if err := checkParam(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearest returns the most similar known word, or "".
func nearest(word string, known []string) (best string) {
	least := 3
	for _, k := range known {
		if d := typo.Distance(word, k, 2); d < least {
			best, least = k, d
		}
	}
	return best
}

// get returns a query parameter, "" if it is missing.
func (c *call) get(name string) string { return c.r.URL.Query().Get(name) }

// list returns the values of a repeated or comma-separated parameter.
func (c *call) list(name string) (all []string) {
	for _, v := range c.r.URL.Query()[name] {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// limit parses the size of a page.
func (c *call) limit(most int) (int, error) {
	text := c.get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badParam("limit", "%q: want a number from 1 to %d", text, most)
	}
	return n, nil
}

// is parses a boolean.
func (c *call) is(name string) (bool, error) {
	switch text := c.get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, badParam(name, "%.40q: want true or false", text)
	}
}

// span parses a duration.
func (c *call) span(name string, most time.Duration) (time.Duration, error) {
	text := c.get(name)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0, badParam(name, "%q: want a duration like 30s, at most %s", text, most)
	}
	return d, nil
}

// acceptable rejects a request that accepts no media type of the route.
func (c *call) acceptable() error {
	accept := strings.Join(c.r.Header.Values("Accept"), ",")
	var media []string
	for _, a := range c.route.answers {
		if a.typ != nil || a.media != "" {
			media = append(media, a.mediaType())
		}
	}
	if strings.TrimSpace(accept) == "" || len(media) == 0 || slices.ContainsFunc(media, func(m string) bool { return accepts(accept, m) }) {
		return nil
	}
	return notAcceptable.of("%s answers with %s.", c.route.id, strings.Join(slices.Compact(media), " or "))
}

// accepts reports whether an Accept header permits a media type. The most specific part that
// matches it decides.
func accepts(accept, media string) (yes bool) {
	group, _, _ := strings.Cut(media, "/")
	best := 0
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		says := 0
		switch {
		case kind == media:
			says = 3
		case kind == group+"/*":
			says = 2
		case kind == "*/*", media == anyMedia:
			says = 1
		}
		if q, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64); says > best && err == nil {
			best, yes = says, q > 0
		}
	}
	return yes
}

// anyMedia is the media type of a response with unknown content.
const anyMedia = "application/octet-stream"

func (a *answer) mediaType() string {
	if a.media == "" {
		return "application/json"
	}
	return a.media
}

// isJSON refuses a body of another media type, or with an encoding.
func (c *call) isJSON() error {
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return wrongMedia.of("The body must have the Content-Type application/json, and has %q.", c.r.Header.Get("Content-Type"))
	}
	if enc := c.r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return wrongMedia.of("The body has the Content-Encoding %q: send it as it is.", enc)
	}
	return nil
}

// decode decodes the body into v, which must have the route's type. An omitted body is read as {}
// if the route permits it.
func (c *call) decode(v any) error {
	if err := c.isJSON(); err != nil {
		return err
	}
	raw, err := c.body()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	done, err := c.buildTurn(ctx, len(raw))
	if err != nil {
		return err
	}
	defer done()
	return decodeBody(ctx, raw, v)
}

// decodeOptional is decode for an optional body.
func (c *call) decodeOptional(v any) error {
	if c.r.ContentLength == 0 && c.r.Header.Get("Content-Type") == "" {
		return nil
	}
	return c.decode(v)
}

// checkHeaders rejects headers that request more safety if the route would ignore them. Repeating a
// request that creates nothing needs no key.
func (c *call) checkHeaders() error {
	for _, name := range []string{"Idempotency-Key", "If-Match"} {
		if name == "Idempotency-Key" && !c.route.creates() {
			continue
		}
		if len(c.r.Header.Values(name)) > 0 && !slices.ContainsFunc(c.route.params, func(p param) bool { return p.in == "header" && p.name == name }) {
			p := badQuery.of("%s takes no header %s: without it this would be done as if it were not there.", c.route.id, name)
			p.Errors = []ProblemError{{Parameter: name, Detail: "leave it out"}}
			return p
		}
	}
	return nil
}

// keyOf copies the header Idempotency-Key into the key of a body, which may have the same value.
// pointer is the key's place in the body.
func (c *call) keyOf(key *string, pointer string) error {
	all := c.r.Header.Values("Idempotency-Key")
	switch {
	case len(all) == 0:
		return nil
	case len(all) > 1:
		return badParam("Idempotency-Key", "it is given %d times", len(all))
	case all[0] == "":
		return badParam("Idempotency-Key", "it is empty: a request that is sent again would be done again. Leave it out if that is meant")
	}
	given := all[0]
	if *key != "" && *key != given {
		return bodyProblem(invalidBody, pointer, "differs from the header Idempotency-Key: leave one of them out")
	}
	*key = given
	return nil
}

// operator returns the options that every verb has: the actor and the reason.
func (c *call) operator(reason string) (opts []weaver.OperateOption) {
	opts = append(opts, weaver.By(c.who.Name))
	if reason != "" {
		opts = append(opts, weaver.Reason(reason))
	}
	return opts
}
