package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Access says what a principal may do: any of the constants, added up.
type Access uint8

// What a principal may do.
const (
	// Submit enqueues tasks and submits jobs, and reads nothing.
	Submit Access = 1 << iota
	// Read reads tasks, jobs and all that is recorded about them, without values and logs.
	// Errors, the messages of progress, labels and metadata are meant for people, and shown;
	// the errors of a command have its last lines of output.
	Read
	// Payloads reads values too: inputs, outputs, what steps gave, artifacts, logs.
	Payloads
	// Operate retries, cancels, unblocks, pauses and deletes, with Read: its answers show
	// tasks. Another input or other options for a task take Submit, too.
	Operate

	// Full is all of them.
	Full = Submit | Read | Payloads | Operate
)

var accessNames = []string{"submit", "read", "payloads", "operate"}

// Has reports whether a holds all of want.
func (a Access) Has(want Access) bool { return a&want == want }

// String lists what a allows: "read,payloads"; "none" for 0.
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

// ParseAccess reads what String writes, and "full". Payloads and operate mean read, too:
// a principal that may change a task may see it.
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
			return 0, fmt.Errorf("%q is no access: want one or more of %s, or full, with commas between them", name, strings.Join(accessNames, ", "))
		}
	}
	return a, nil
}

// Principal is who sent a request.
type Principal struct {
	Name   string // the actor of what it does, in the audit
	Access Access

	open bool // nobody proved anything: the Host is looked at
}

// ErrUnauthorized is what an Authorize returns for a request without credentials, or
// with wrong ones: 401. Any other error is logged, and answered with 503.
var ErrUnauthorized = errors.New("no valid credentials")

// Authorizer decides who sent a request, which it must not change, and whose body it
// must not read.
type Authorizer func(*http.Request) (Principal, error)

// Open takes every request for one of the principal: for a program whose middleware has
// decided already, and for a server on the loopback interface. As nothing proves who
// sent a request, a page of another site might send it under a name that leads to
// this address: unless Config.AllowedHosts says otherwise the Host of a request must
// be localhost or a loopback address (421).
func Open(p Principal) Authorizer {
	p.open = true
	return func(*http.Request) (Principal, error) { return p, nil }
}

// AnyOf takes what one of several authorizers does, which are asked in their order: a
// server with tokens and with passwords.
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

// challenge is an ErrUnauthorized that says how to send credentials.
type challenge struct {
	header  string
	counted bool // the wrong credentials were counted already
}

func (*challenge) Error() string { return ErrUnauthorized.Error() }
func (*challenge) Unwrap() error { return ErrUnauthorized }

const (
	bearerChallenge = `Bearer realm="weaver"`
	basicChallenge  = `Basic realm="weaver", charset="UTF-8"`
)

// challengeOf is the header of an ErrUnauthorized.
func challengeOf(err error) string {
	if c, says := errors.AsType[*challenge](err); says {
		return c.header
	}
	return bearerChallenge
}

// authorize finds out who sent the request, and whether it may.
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

// misdirected answers for a Host that an Open API does not have.
func (c *call) misdirected() error {
	return misdirected.of("The host %q is not served without credentials: use localhost, or add it to the allowed hosts.", c.r.Host)
}

// publicHost refuses a Host that an Open API does not have, for a route that everybody
// may use. Whether the API is an open one only its Authorize knows: it is asked first
// about a request without credentials, which costs nothing.
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

// unauthorized answers for a request without credentials, or with wrong ones. A cookie is
// no guess at a token: one that has ended comes with everything that a page asks for.
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
