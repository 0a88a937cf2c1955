package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Access is a principal's set of permissions: any of the constants, added up.
type Access uint8

// The permissions.
const (
	// Submit enqueues tasks and submits jobs, and reads nothing.
	Submit Access = 1 << iota
	// Read reads tasks, jobs and their records, without values and logs. Errors, progress messages,
	// labels and metadata are meant for people and are shown; the errors of a command contain its
	// last lines of output.
	Read
	// Payloads also reads values: inputs, outputs, results of steps, artifacts, logs.
	Payloads
	// Operate retries, cancels, unblocks, pauses and deletes. It needs Read, because its responses
	// show tasks. Another input or other options for a task also need Submit.
	Operate

	// Full holds all permissions.
	Full = Submit | Read | Payloads | Operate
)

var accessNames = []string{"submit", "read", "payloads", "operate"}

// Has reports whether a contains all of want.
func (a Access) Has(want Access) bool { return a&want == want }

// String lists the permissions of a: "read,payloads"; "none" for 0.
func (a Access) String() string {
	var names []string
	for i, name := range accessNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// ParseAccess parses the output of String, and "full". Payloads and operate imply read: a principal
// that may change a task may see it.
func ParseAccess(s string) (Access, error) {
	var a Access
	for name := range strings.SplitSeq(s, ",") {
		switch strings.TrimSpace(name) {
		case "submit":
			a |= Submit
		case "read":
			a |= Read
		case "payloads":
			a |= Payloads | Read
		case "operate":
			a |= Operate | Read
		case "full":
			a |= Full
		default:
			return 0, fmt.Errorf("%q: not an access; use one or more of %s, or full, separated by commas", name, strings.Join(accessNames, ", "))
		}
	}
	return a, nil
}

// Principal is the sender of a request.
type Principal struct {
	Name   string // the actor in the audit log
	Access Access

	open bool // without authentication: the Host is checked
}

// ErrUnauthorized is the error of an Authorizer for a request with missing or wrong credentials:
// 401. Any other error is logged, and the response is 503.
var ErrUnauthorized = errors.New("no valid credentials")

// Authorizer identifies the sender of a request. It must not change the request or read its body.
type Authorizer func(*http.Request) (Principal, error)

// Open accepts every request as one of the principal. It is for a program whose middleware has
// already authenticated the request, and for a server on the loopback interface. The sender is not
// authenticated, so a page of another site could send a request under a name that resolves to this
// address. Unless Config.AllowedHosts says otherwise the Host of a request must therefore be
// localhost or a loopback address (421).
func Open(p Principal) Authorizer {
	p.open = true
	return func(*http.Request) (Principal, error) { return p, nil }
}

// AnyOf accepts a request if one of several authorizers does, tried in order: for a server with
// tokens and passwords.
func AnyOf(list ...Authorizer) Authorizer {
	return func(r *http.Request) (Principal, error) {
		var challenges []string
		counted := false
		for _, authorize := range list {
			who, err := authorize(r)
			if !errors.Is(err, ErrUnauthorized) {
				return who, err
			}
			if c, is := errors.AsType[*challenge](err); is {
				counted = counted || c.counted
			}
			if c := challengeOf(err); !slices.Contains(challenges, c) {
				challenges = append(challenges, c)
			}
		}
		return Principal{}, &challenge{header: strings.Join(challenges, ", "), counted: counted}
	}
}

// challenge is an ErrUnauthorized with the WWW-Authenticate header to send.
type challenge struct {
	header  string
	counted bool // the wrong credentials were already counted
}

func (*challenge) Error() string { return ErrUnauthorized.Error() }
func (*challenge) Unwrap() error { return ErrUnauthorized }

const (
	bearerChallenge = `Bearer realm="weaver"`
	basicChallenge  = `Basic realm="weaver", charset="UTF-8"`
)

// challengeOf returns the WWW-Authenticate header of an ErrUnauthorized.
func challengeOf(err error) string {
	if c, says := errors.AsType[*challenge](err); says {
		return c.header
	}
	return bearerChallenge
}

// authorize identifies the sender of the request and checks its permissions.
func (c *call) authorize() error {
	if c.route.public {
		return c.publicHost()
	}
	who, err := c.api.cfg.Authorize(c.r)
	switch {
	case errors.Is(err, ErrUnauthorized):
		return c.unauthorized(err)
	case err != nil:
		if p, is := errors.AsType[*Problem](err); is {
			return p
		}
		c.api.log.ErrorContext(c.r.Context(), "Authorize failed", "operation", c.route.id, "error", err)
		return undecided.of("Try again; the server's log says what happened.")
	case who.open && !c.api.hostAllowed(c.r.Host):
		return c.misdirected()
	}
	if c.who = who; !who.Access.Has(c.route.access) {
		return forbidden.of("%s needs the access %s, and %q has %s.", c.route.id, c.route.access, who.Name, who.Access)
	}
	return nil
}

// misdirected returns the problem of a Host that an Open API does not serve.
func (c *call) misdirected() error {
	return misdirected.of("The host %q is not served without credentials: use localhost, or add it to the allowed hosts.", c.r.Host)
}

// publicHost rejects a Host that an Open API does not serve, for a public route. Only Authorize
// knows whether the API is open, so publicHost first calls it with a request without credentials,
// which is cheap.
func (c *call) publicHost() error {
	if c.api.hostAllowed(c.r.Host) {
		return nil
	}
	bare := c.r.Clone(c.r.Context())
	bare.Header.Del("Authorization")
	bare.Header.Del("Cookie")
	bare.Body = http.NoBody
	for _, r := range []*http.Request{bare, c.r} {
		if who, err := c.api.cfg.Authorize(r); err != nil || !who.open {
			return nil
		}
	}
	return c.misdirected()
}

// unauthorized returns the problem of missing or wrong credentials. A wrong cookie does not count
// as a guess at a token: a browser sends an expired one with every request of a page.
func (c *call) unauthorized(err error) error {
	p := unauthorized.of("Send the header Authorization.")
	switch {
	case c.r.Header.Get("Authorization") != "":
		if ch, is := errors.AsType[*challenge](err); !is || !ch.counted {
			if !c.api.fails.take(addressOf(c.r)) {
				return waitAMinute()
			}
		}
		p = unauthorized.of("The credentials are wrong or no longer good.")
	case len(c.r.CookiesNamed(cookieName)) > 0:
		p = unauthorized.of("The login has ended: log in again.")
	}
	p.Challenge = challengeOf(err)
	return p
}
