// Package builtin has task types that need no Go code: run a command
// (weaver.exec.run.v1), call a URL (weaver.http.request.v1), wait for a
// person (weaver.person.approve.v1) and do one of the first two for each value of
// a list (weaver.flow.foreach.v1). They are what
// `weaver run` and `weaver worker` bring along; a program of your own can
// register their Handlers beside its own types.
//
// A producer that may enqueue tasks for a worker with these handlers can run any
// command as that worker's user: register them only where that is meant.
// Inputs, the environment of a command included, are stored as they are; the
// values of RunInput.SecretEnv, RunInput.EnvFile and RequestInput.HeadersEnv
// are read where the worker runs, and not stored.
package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/goweaver/weaver"
)

// Run runs a command: one process group per attempt, ended when the attempt
// ends. See RunInput and RunOutput.
var Run = weaver.Define[RunInput, RunOutput]("weaver.exec.run.v1")

// Request calls a URL. See RequestInput and RequestOutput.
var Request = weaver.Define[RequestInput, RequestOutput]("weaver.http.request.v1")

// Config configures the handlers. The zero value works.
type Config struct {
	// NoPrivateNetwork makes Request refuse loopback, private, link-local and
	// other addresses that are not public, checked on the address that is
	// dialled, also after redirects.
	NoPrivateNetwork bool

	// NoMetadata makes Request refuse link-local addresses and the other addresses of
	// the metadata services of clouds, where a machine's credentials are read: in all
	// their forms, and checked as for NoPrivateNetwork. Loopback and private addresses
	// are called. A proxy of the environment is used: hosts that it is asked for are
	// looked up before, but what it calls is its own decision. The command line sets it
	// for worker and serve.
	NoMetadata bool

	// AllowNetworks are addresses that Request may call although one of the two above
	// refuses them. Default none.
	AllowNetworks []netip.Prefix

	// Logs, when it is set, is called for each attempt of Run whose command
	// writes something, when it does. What it returns gets everything that the
	// command writes, byte for byte, stdout and stderr in the order in which
	// they are read, in one Write after the other, and is closed before the
	// attempt ends. It may return nil. The command runs on whatever its errors
	// are. Default: only the end of the output is kept, see RunOutput.
	Logs func(weaver.CurrentInfo) io.WriteCloser
}

// Handlers returns the handlers of this package's task types.
func Handlers(cfg Config) []weaver.Handler {
	r := newRequester(cfg)
	return []weaver.Handler{
		Run.Handler(runner{cfg.Logs}.run),
		Request.Handler(r.request),
		Approve.Handler(approve),
		Foreach.Handler(foreach),
	}
}

// Duration is a time.Duration that JSON writes as "1m30s".
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler. It takes a Go duration, such as
// "90s" or "1m30s". By the convention of package json null changes nothing.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf(`%s is no duration: write a text such as "90s" or "1m30s"`, raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is no duration: write for example "90s" or "1m30s"`, text)
	}
	*d = Duration(parsed)
	return nil
}

// limited returns ctx, ended after d with cause weaver.ErrTimeout when d > 0.
func limited(ctx context.Context, d Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(d), weaver.ErrTimeout)
}
