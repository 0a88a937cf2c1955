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
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// Problem is an answer that is no success, as RFC 9457 has it. It is an error: what
// the client's methods return for one.
type Problem struct {
	Type   string         `json:"type"`             // stable: ProblemBase and the name of the problem
	Title  string         `json:"title"`            // the same for all of one type
	Status int            `json:"status"`           // of the answer
	Detail string         `json:"detail,omitempty"` // what is wrong here, and what to do
	Errors []ProblemError `json:"errors,omitempty"` // what is wrong with the parts of the request

	retryAfter int
	allow      string
	challenge  string // of a 401; "" is that of tokens
}

// ProblemError is one mistake of a request.
type ProblemError struct {
	Pointer   string `json:"pointer,omitempty"`   // into the body, a JSON pointer (RFC 6901) behind a #
	Parameter string `json:"parameter,omitempty"` // of the path, the query or the headers
	Column    int    `json:"column,omitempty"`    // in the parameter's value, from 1
	Detail    string `json:"detail"`

	Meant string   `json:"meant,omitempty"` // the word that was probably meant
	Words []string `json:"words,omitempty"` // that could stand there
}

// ProblemBase begins the types of problems; docs/problems.md has a section for each.
const ProblemBase = "https://github.com/goweaver/weaver/blob/main/docs/problems.md#"

// Error implements error.
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text = p.Detail
	}
	for _, e := range p.Errors {
		at := e.Pointer
		if at == "" {
			at = e.Parameter
		}
		text += fmt.Sprintf("; %s: %s", at, e.Detail)
	}
	return text
}

// Is makes errors.Is of a problem that came over HTTP say what it says of the error
// that the problem was made of.
func (p *Problem) Is(target error) bool {
	k, ok := kindOfType(p.Type)
	return ok && k.sentinel != nil && errors.Is(k.sentinel, target)
}

// problemKind is one type of problem.
type problemKind struct {
	sentinel error // nil: a problem of HTTP alone
	name     string
	status   int
	title    string
	retry    int // seconds after which to try again; 0: that is not said
}

// of makes a problem of the kind.
func (k problemKind) of(format string, args ...any) *Problem {
	return &Problem{Type: ProblemBase + k.name, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...), retryAfter: k.retry}
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
	notAcceptable   = problemKind{nil, "not-acceptable", http.StatusNotAcceptable, "The answer cannot be given in what the request accepts.", 0}
	preconditionBad = problemKind{weaver.ErrChanged, "precondition-failed", http.StatusPreconditionFailed, "The task has changed since it was read.", 0}
	bodyTooSlow     = problemKind{nil, "body-timeout", http.StatusRequestTimeout, "The body did not come in time.", 0}
	bodyTooLarge    = problemKind{nil, "body-too-large", http.StatusRequestEntityTooLarge, "The body is too large.", 0}
	urlTooLong      = problemKind{nil, "url-too-long", http.StatusRequestURITooLong, "The path and query are too long.", 0}
	wrongMedia      = problemKind{nil, "unsupported-media-type", http.StatusUnsupportedMediaType, "The body is of the wrong kind.", 0}
	misdirected     = problemKind{nil, "misdirected", http.StatusMisdirectedRequest, "This host is not served here.", 0}
	invalidBody     = problemKind{nil, "invalid-body", http.StatusUnprocessableEntity, "The body says something impossible.", 0}
	unknownType     = problemKind{nil, "unknown-type", http.StatusUnprocessableEntity, "No worker has announced this task type.", 0}
	tooManyFailures = problemKind{nil, "too-many-failed-logins", http.StatusTooManyRequests, "Too many wrong credentials came from this address.", 60}
	tooManyStreams  = problemKind{nil, "too-many-streams", http.StatusTooManyRequests, "Too many streams are open.", 5}
	tooManyLong     = problemKind{nil, "too-many-long-requests", http.StatusTooManyRequests, "Too many requests wait or download.", 1}
	tooManyBodies   = problemKind{nil, "too-many-bodies", http.StatusTooManyRequests, "Too many requests with a body are in work.", 1}
	tooManySearches = problemKind{nil, "too-many-searches", http.StatusTooManyRequests, "Too many searches are watched.", 5}
	undecided       = problemKind{nil, "access-undecided", http.StatusServiceUnavailable, "What decides about access failed.", 5}
	internal        = problemKind{nil, "internal", http.StatusInternalServerError, "The server failed.", 0}
	timedOut        = problemKind{nil, "timed-out", http.StatusServiceUnavailable, "The answer took too long.", 1}
	stopping        = problemKind{nil, "stopping", http.StatusServiceUnavailable, "The server stops.", 1}
)

// httpProblems lists them, for the reference page.
var httpProblems = []problemKind{
	badRequest, badQuery, unauthorized, forbidden, crossOrigin, noRoute, wrongMethod, notAcceptable, preconditionBad, bodyTooSlow, bodyTooLarge, urlTooLong,
	wrongMedia, misdirected, invalidBody, unknownType, tooManyFailures, tooManyStreams, tooManyLong, tooManyBodies, tooManySearches, undecided, internal, timedOut, stopping,
}

// Problems of sentinels that are made here, too.
var (
	invalidInput = problemKind{weaver.ErrInvalidInput, "invalid-input", http.StatusUnprocessableEntity, "The input was refused.", 0}
	notFound     = problemKind{weaver.ErrNotFound, "not-found", http.StatusNotFound, "There is nothing of this kind.", 0}
	statsQuery   = problemKind{store.ErrStatsQuery, "invalid-stats-query", http.StatusBadRequest, "These statistics cannot be asked for.", 0}
	invalidQuery = problemKind{ops.ErrInvalidQuery, "invalid-query", http.StatusBadRequest, "The query cannot be read.", 0}
)

// sentinels says what each error of the packages below is over HTTP. Of an error that
// is several of them the first one counts.
var sentinels = []problemKind{
	{weaver.ErrInvalidJob, "invalid-job", 422, "The job has mistakes.", 0},
	{weaver.ErrInvalidOption, "invalid-option", 422, "An option has an impossible value.", 0},
	{weaver.ErrTooLarge, "payload-too-large", 413, "A value is over the limit.", 0},
	invalidInput,
	invalidQuery,
	statsQuery,
	{weaver.ErrBadCursor, "bad-cursor", 400, "The cursor did not come from a list.", 0},
	notFound,
	{weaver.ErrNoSuchNode, "no-such-node", 404, "The job has no task of this name.", 0},
	{weaver.ErrNoSuchStep, "no-such-step", 404, "The task recorded no such step.", 0},
	{weaver.ErrNoSuchNeed, "no-such-need", 404, "The task has no such need.", 0},
	{weaver.ErrForgotten, "forgotten", 410, "It was erased.", 0},
	{weaver.ErrValuesDropped, "values-dropped", 410, "A rule of retention dropped it.", 0},
	{store.ErrBlobGone, "blob-gone", 410, "The bytes were deleted.", 0},
	{weaver.ErrChanged, "changed", 409, "The task has changed meanwhile.", 0},
	{weaver.ErrConflict, "conflict", 409, "It conflicts with what is recorded.", 0},
	{weaver.ErrState, "state", 409, "The state does not allow it.", 0},
	{store.ErrRefused, "refused", 422, "The store cannot keep this.", 0},
	{store.ErrLimit, "limit", 409, "A limit is reached.", 0},
	{weaver.ErrBlocked, "blocked", 409, "The task is blocked.", 0},
	{weaver.ErrNotSucceeded, "not-succeeded", 409, "The task has not succeeded.", 0},
	{weaver.ErrWrongType, "wrong-type", 409, "The task is of another type.", 0},
	{store.ErrNoFeed, "no-events", 409, "No events are kept.", 0},
	{store.ErrUnknown, "unknown-outcome", 503, "It is not known whether it was done.", 1},
	{store.ErrBusy, "store-busy", 503, "The store is locked by another writer.", 1},
	{store.ErrFull, "store-full", 507, "No space is left for the store.", 60},
	{store.ErrReadOnly, "store-read-only", 503, "The store cannot be written.", 60},
	{store.ErrNotMigrated, "store-not-migrated", 503, "The store's schema is not migrated.", 10},
	{store.ErrNewerSchema, "store-newer-schema", 503, "The store's schema is newer than this server.", 60},
	{store.ErrNotDatabase, "store-not-a-database", 503, "The store is not a database.", 60},
	{store.ErrForeignDatabase, "store-foreign", 503, "The database holds other tables.", 60},
	{store.ErrUnavailable, "store-unavailable", 503, "The store cannot be reached.", 2},
	{store.ErrClosed, "store-closed", 503, "The store is closed.", 2},
	{weaver.ErrNoBucket, "no-bucket", 503, "The value is in a bucket, and this server has none.", 0},
	{blob.ErrCorrupt, "bytes-changed", 500, "The stored bytes have changed since they were put.", 0},
	{store.ErrOtherBucket, "other-bucket", 503, "The bucket is not the one that has it.", 0},
	{store.ErrRestartTx, "restart-transaction", 503, "The transaction must be restarted.", 1},
}

// kindOfType returns the kind that a problem's type names.
func kindOfType(uri string) (problemKind, bool) {
	for _, list := range [][]problemKind{sentinels, httpProblems} {
		for _, k := range list {
			if uri == ProblemBase+k.name {
				return k, true
			}
		}
	}
	return problemKind{}, false
}

// problemOf turns an error into the problem that is answered. known is false when it
// is a failure of the server or of what it uses, whose text (it may name folders, hosts
// and users) is logged and not shown.
func problemOf(err error) (p *Problem, known bool) {
	if errors.As(err, &p) {
		return p, true
	}
	if errors.Is(err, blob.ErrNotFound) { // its text names a file
		p, _ = problemOf(store.ErrBlobGone)
		return p, false
	}
	for _, k := range sentinels {
		switch {
		case !errors.Is(err, k.sentinel):
		case k.status >= 500:
			return k.of(""), false
		default:
			return k.of("%s", err), true
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return timedOut.of("The server stopped waiting for the store. Try again."), true
	}
	return internal.of("The server's log says what happened."), false
}

// stoppedProblem is the problem of a request that the API's stop has ended.
func stoppedProblem() *Problem {
	return stopping.of("The server stopped before this was done. Try again.")
}

// problem is problemOf for an answer: it logs what is not shown, and knows when the API's
// stop has ended the request.
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

// failed logs a failure that is answered with p. While a store is away every request
// would: of what has a problem of its own one line a second is logged.
func (a *API) failed(ctx context.Context, p *Problem, what string, attrs ...any) {
	if p.Status != http.StatusInternalServerError && !a.quiet.take(p.Type) {
		return
	}
	a.log.ErrorContext(ctx, what, attrs...)
}

// quiet lets each of some names pass once a second.
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

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Cache-Control", "Content-Length", "Content-Disposition"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", cmp.Or(p.challenge, bearerChallenge))
	}
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // words like created> are for people
	_ = enc.Encode(p)        // an error means that the client has disconnected
}
