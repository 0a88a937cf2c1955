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

// Bodies in progress use memory: their bytes, and several times as much for the decoded values. The
// route bounds each body in bytes, depth and number of values, which are checked as the bytes
// arrive. The code here bounds all bodies together, and those of one principal, or of one address
// on public routes. A small body never waits for large ones.

const (
	smallBody = 64 << 10 // largest size of a small body in bytes

	// placeWait is the time that a request waits for its turn before it is refused.
	placeWait = 10 * time.Second

	// publicBodyTimeout bounds the receipt of a body on a public route.
	publicBodyTimeout = 5 * time.Second
)

// Bounds of the values of a body, for routes without task inputs.
const (
	verbValues  = 5_000
	loginValues = 16
	loginDepth  = 4
	loginBody   = 4 << 10
	verbBody    = 64 << 10 // for a verb without a value
)

// bodies holds the shares of the bodies in progress.
type bodies struct {
	requests    *shares // bodies in progress, by name
	bytes       *shares // bytes of large bodies
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

// sender returns the sender of the body: a principal, or an address.
func (c *call) sender() string {
	if c.route.public {
		return "address " + addressOf(c.r)
	}
	return "principal " + c.who.Name
}

// boundBody sets the missing body bounds of a route. most is Config.MaxBody.
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

// release returns the share of the body.
func (c *call) release() {
	for _, release := range c.releases {
		release()
	}
}

// buildTurn waits until a body of the given size may be decoded.
func (c *call) buildTurn(ctx context.Context, size int) (done func(), err error) {
	if size > smallBody { // it already has a share of all bytes
		return func() {}, nil
	}
	return c.api.bodies.building.take(ctx, c.sender(), 1)
}

// body reads the body. Its share is returned when the request is answered.
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
		size = most // the size is unknown
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
	_ = rc.SetReadDeadline(time.Now().Add(wait)) // the wait for a share may have taken time
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
	// The deadline is for the body only: a connection that is watched for its end must outlive it.
	_ = rc.SetReadDeadline(time.Time{})
	values := all.smallValues
	if large {
		values = all.largeValues
	}
	return raw, c.hold(values, int64(bound.values))
}

// readBody reads all of r. size is the announced number of bytes; negative if unknown.
func readBody(r io.Reader, size int64) ([]byte, error) {
	if size < 0 {
		return io.ReadAll(r)
	}
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := buf.ReadFrom(r)
	return buf.Bytes(), err
}

// bodyError returns the problem for an error while reading a body.
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
		if c.api.over.Err() != nil { // it ended the deadline
			return stoppedProblem()
		}
		return bodyTooSlow.of("It did not come within %s.", wait)
	}
	return badRequest.of("The body ended too soon: %s.", err)
}
