package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// problemKind is one type of problem.
type problemKind wire.Kind

// of returns a problem of the kind.
func (k problemKind) of(format string, args ...any) *Problem {
	return &Problem{Type: ProblemBase + k.Name, Title: k.Title, Status: k.Status, Detail: fmt.Sprintf(format, args...), RetryAfter: k.Retry}
}

// Problems of HTTP alone.
var (
	badRequest      = problemKind{nil, "bad-request", http.StatusBadRequest, "The request cannot be read.", 0}
	badQuery        = problemKind{nil, "bad-query", http.StatusBadRequest, "A parameter is wrong.", 0}
	unauthorized    = problemKind{nil, "unauthorized", http.StatusUnauthorized, "Credentials are needed.", 0}
	forbidden       = problemKind{nil, "forbidden", http.StatusForbidden, "These credentials do not allow it.", 0}
	crossOrigin     = problemKind{nil, "cross-origin", http.StatusForbidden, "The page of another site sent this.", 0}
	noRoute         = problemKind{nil, "no-route", http.StatusNotFound, "Nothing is at this path.", 0}
	wrongMethod     = problemKind{nil, "method-not-allowed", http.StatusMethodNotAllowed, "The path does not have this method.", 0}
	notAcceptable   = problemKind{nil, "not-acceptable", http.StatusNotAcceptable, "The response is not available in an accepted media type.", 0}
	preconditionBad = problemKind(wire.Precondition)
	bodyTooSlow     = problemKind{nil, "body-timeout", http.StatusRequestTimeout, "The body did not arrive in time.", 0}
	bodyTooLarge    = problemKind{nil, "body-too-large", http.StatusRequestEntityTooLarge, "The body is too large.", 0}
	urlTooLong      = problemKind{nil, "url-too-long", http.StatusRequestURITooLong, "The path and query are too long.", 0}
	wrongMedia      = problemKind{nil, "unsupported-media-type", http.StatusUnsupportedMediaType, "The media type of the body is not supported.", 0}
	misdirected     = problemKind{nil, "misdirected", http.StatusMisdirectedRequest, "This host is not served here.", 0}
	invalidBody     = problemKind{nil, "invalid-body", http.StatusUnprocessableEntity, "The body is invalid.", 0}
	unknownType     = problemKind{nil, "unknown-type", http.StatusUnprocessableEntity, "No worker has announced this task type.", 0}
	tooManyFailures = problemKind{nil, "too-many-failed-logins", http.StatusTooManyRequests, "Too many wrong credentials came from this address.", 60}
	tooManyStreams  = problemKind{nil, "too-many-streams", http.StatusTooManyRequests, "Too many streams are open.", 5}
	tooManyLong     = problemKind{nil, "too-many-long-requests", http.StatusTooManyRequests, "Too many requests wait or download.", 1}
	tooManyBodies   = problemKind{nil, "too-many-bodies", http.StatusTooManyRequests, "Too many bodies are in progress.", 1}
	tooManySearches = problemKind{nil, "too-many-searches", http.StatusTooManyRequests, "Too many searches are watched.", 5}
	undecided       = problemKind{nil, "access-undecided", http.StatusServiceUnavailable, "The access check failed.", 5}
	internal        = problemKind{nil, "internal", http.StatusInternalServerError, "The server failed.", 0}
	timedOut        = problemKind{nil, wire.TimedOut, http.StatusServiceUnavailable, "The response took too long.", 1}
	notReady        = problemKind{nil, "not-ready", http.StatusServiceUnavailable, "The process is not ready.", 2}
	stopping        = problemKind{nil, "stopping", http.StatusServiceUnavailable, "The server is stopping.", 1}
)

// httpProblems lists these problems for the reference page.
var httpProblems = []problemKind{
	badRequest, badQuery, unauthorized, forbidden, crossOrigin, noRoute, wrongMethod, notAcceptable, preconditionBad, bodyTooSlow, bodyTooLarge, urlTooLong,
	wrongMedia, misdirected, invalidBody, unknownType, tooManyFailures, tooManyStreams, tooManyLong, tooManyBodies, tooManySearches, undecided, internal, timedOut, notReady, stopping,
}

// Problems of sentinels that handlers also create.
var (
	invalidInput = kindOfError(weaver.ErrInvalidInput)
	notFound     = kindOfError(weaver.ErrNotFound)
	statsQuery   = kindOfError(store.ErrStatsQuery)
	invalidQuery = kindOfError(ops.ErrInvalidQuery)
)

// kindOfError returns the problem of a sentinel.
func kindOfError(sentinel error) problemKind {
	for _, k := range wire.Kinds() {
		if errors.Is(k.Sentinel, sentinel) {
			return problemKind(k)
		}
	}
	return internal
}

// problemOf converts an error to a problem. known is false for a failure of the server or its
// dependencies: the text, which may contain folders, hosts and users, is logged and not shown.
func problemOf(err error) (p *Problem, known bool) {
	if errors.As(err, &p) {
		return p, true
	}
	if errors.Is(err, blob.ErrNotFound) { // its text names a file
		p, _ = problemOf(store.ErrBlobGone)
		return p, false
	}
	for _, k := range wire.Kinds() {
		switch {
		case !errors.Is(err, k.Sentinel):
		case k.Status >= 500:
			return problemKind(k).of(""), false
		default:
			return problemKind(k).of("%s", err), true
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return timedOut.of("The server stopped waiting for the store. Try again."), true
	}
	return internal.of("The server's log says what happened."), false
}

// stoppedProblem returns the problem of a request that the API's stop has ended.
func stoppedProblem() *Problem {
	return stopping.of("The server stopped before this was done. Try again.")
}

// problem is problemOf for a response: it logs hidden texts, and handles requests that the API's
// stop has ended.
func (c *call) problem(err error, what string) *Problem {
	_, made := errors.AsType[*Problem](err)
	stopped := errors.Is(err, errStopping) || c.api.over.Err() != nil && errors.Is(err, context.Canceled)
	if stopped && !made && !errors.Is(err, store.ErrUnknown) {
		return stoppedProblem()
	}
	p, known := problemOf(err)
	if !known {
		c.api.failed(c.r.Context(), p, what, "operation", c.route.id, "path", c.r.URL.Path, "error", err)
	}
	return p
}

// failed logs a failure whose response is p. While a store is unavailable every request fails, so
// it logs one line a second for each kind of problem, except for internal errors.
func (a *API) failed(ctx context.Context, p *Problem, what string, attrs ...any) {
	if p.Status != http.StatusInternalServerError && !a.quiet.take(p.Type) {
		return
	}
	a.log.ErrorContext(ctx, what, attrs...)
}

// quiet passes each name once a second.
type quiet struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (q *quiet) take(name string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, known := q.last[name]; known && time.Since(at) < time.Second {
		return false
	}
	if q.last == nil {
		q.last = make(map[string]time.Time)
	}
	q.last[name] = time.Now()
	return true
}

// writeProblem writes a problem response.
func writeProblem(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Cache-Control", "Content-Length", "Content-Disposition"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", cmp.Or(p.Challenge, bearerChallenge))
	}
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // texts such as created> are for people
	_ = enc.Encode(p)        // an error means that the client has disconnected
}
