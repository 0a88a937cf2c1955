package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"slices"
	"time"
)

// Bodies cost memory while they are in work: the bytes, and several times as much for what
// is built of them. Each body is bounded by its route, in bytes, depth and number of
// values, and that is looked at as the bytes come. All bodies together are bounded here,
// and so are those of one principal, or of one address where nobody has proved who it is.
// A small body never waits for large ones.

const (
	smallBody = 64 << 10 // bytes of a body that counts as a small one

	// placeWait is the time that a request waits for its turn before it is refused.
	placeWait = 10 * time.Second

	// publicBodyTimeout bounds a body of which nobody knows who sends it.
	publicBodyTimeout = 5 * time.Second
)

// Bounds of the values of a body, for routes that take no input of a task.
const (
	verbValues  = 5_000
	loginValues = 16
	loginDepth  = 4
	loginBody   = 4 << 10
	verbBody    = 64 << 10 // of a verb that takes no value
)

// bodies are the bodies in work.
type bodies struct {
	requests    *shares // bodies in work, by name
	bytes       *shares // of large bodies
	smallValues *shares
	largeValues *shares
	building    *shares // small bodies that are being decoded
}

func newBodies(cfg *Config) *bodies {
	values := int64(cfg.MaxValues)
	return &bodies{
		requests:    newShares(1<<40, int64(cfg.MaxBodiesPerPrincipal)),
		bytes:       newShares(2*cfg.MaxInput, max(cfg.MaxInput, cfg.MaxBody)),
		smallValues: newShares(min(values, smallBody), min(values, smallBody)/2),
		largeValues: newShares(values, values),
		building:    newShares(int64(runtime.GOMAXPROCS(0)), int64(max(1, runtime.GOMAXPROCS(0)-1))),
	}
}

// sender names who sent the body: a principal, or an address.
func (c *call) sender() string {
	if c.route.public {
		return "address " + addressOf(c.r)
	}
	return "principal " + c.who.Name
}

// boundBody gives a route the bounds of its body that it does not have. most is
// Config.MaxBody.
func (r *route) boundBody(most int64) {
	if r.body == nil || r.maxBody > 0 {
		return
	}
	r.maxBody = most
	value := reflect.TypeFor[json.RawMessage]()
	if !slices.ContainsFunc(bodyFieldsOf(r.body), func(f bodyField) bool { return f.Type == value }) {
		r.maxBody, r.maxValues = min(most, verbBody), verbValues
	}
}

// hold takes a share until the request is answered.
func (c *call) hold(of *shares, n int64) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), placeWait)
	defer cancel()
	release, err := of.take(ctx, c.sender(), n)
	switch {
	case c.r.Context().Err() != nil:
		return c.r.Context().Err()
	case err != nil:
		return tooManyBodies.of("It waited for its turn in vain: send fewer requests at a time, or smaller ones.")
	}
	c.releases = append(c.releases, release)
	return nil
}

// release frees the share of the body.
func (c *call) release() {
	for _, release := range c.releases {
		release()
	}
}

// buildTurn waits until a body of some bytes may be decoded.
func (c *call) buildTurn(ctx context.Context, size int) (done func(), err error) {
	if size > smallBody { // it has its share of all bytes
		return func() {}, nil
	}
	return c.api.bodies.building.take(ctx, c.sender(), 1)
}

// body reads the body. Its share of what all bodies may cost is given back when the
// request is answered.
func (c *call) body() ([]byte, error) {
	most := c.route.maxBody
	size := c.r.ContentLength
	if size > most {
		return nil, bodyTooLarge.of("The body has %d bytes: at most %d are taken.", size, most)
	}
	all := c.api.bodies
	if err := c.hold(all.requests, 1); err != nil {
		return nil, err
	}
	if size < 0 {
		size = most // it does not say
	}
	large := size > smallBody
	if large {
		if err := c.hold(all.bytes, size); err != nil {
			return nil, err
		}
	}
	rc := http.NewResponseController(c.w)
	wait := c.api.cfg.BodyTimeout
	if c.route.public {
		wait = min(wait, publicBodyTimeout)
	}
	_ = rc.SetReadDeadline(time.Now().Add(wait)) // it may have waited since
	bound := &jsonBound{r: http.MaxBytesReader(c.w, c.r.Body, most), maxValues: c.api.cfg.MaxValues, maxDepth: maxDepth}
	if c.route.maxValues > 0 {
		bound.maxValues = min(bound.maxValues, c.route.maxValues)
	}
	if c.route.maxDepth > 0 {
		bound.maxDepth = c.route.maxDepth
	}
	raw, err := readBody(bound, c.r.ContentLength)
	if err := c.bodyError(err, most, wait); err != nil {
		return nil, err
	}
	// The deadline is the body's: a connection that is watched for its end must outlive it.
	_ = rc.SetReadDeadline(time.Time{})
	values := all.smallValues
	if large {
		values = all.largeValues
	}
	return raw, c.hold(values, int64(bound.values))
}

// readBody reads all, of which size bytes were announced; less than 0: it was not said.
func readBody(r io.Reader, size int64) ([]byte, error) {
	if size < 0 {
		return io.ReadAll(r)
	}
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := buf.ReadFrom(r)
	return buf.Bytes(), err
}

// bodyError says why a body could not be read.
func (c *call) bodyError(err error, most int64, wait time.Duration) error {
	if err == nil {
		return nil
	}
	if p, is := errors.AsType[*Problem](err); is {
		c.w.Header().Set("Connection", "close") // the rest is not read
		return p
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return bodyTooLarge.of("The body has more than %d bytes.", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.w.Header().Set("Connection", "close")
		if c.api.over.Err() != nil { // which ended the deadline
			return stoppedProblem()
		}
		return bodyTooSlow.of("It did not come within %s.", wait)
	}
	return badRequest.of("The body ended too soon: %s.", err)
}
