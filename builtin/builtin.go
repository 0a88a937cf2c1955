// Package builtin provides task types that need no Go code: run a command
// (weaver.exec.run.v1), call a URL (weaver.http.request.v1), wait for a person
// (weaver.person.approve.v1), and run one of the first two for each value of a
// list (weaver.flow.foreach.v1). `weaver run` and `weaver worker` include them;
// other programs can register their Handlers next to their own types.
//
// A producer that may enqueue tasks for a worker with these handlers can run any
// command as that worker's user: register them only where you intend that. Inputs
// are stored as they are, including the environment of a command. The values of
// RunInput.SecretEnv, RunInput.EnvFile and RequestInput.HeadersEnv are read by the
// worker and not stored.
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

// Run runs a command in a process group of its own, which ends with the attempt.
// See RunInput and RunOutput.
var Run = weaver.Define[RunInput, RunOutput]("weaver.exec.run.v1")

// Request calls a URL. See RequestInput and RequestOutput.
var Request = weaver.Define[RequestInput, RequestOutput]("weaver.http.request.v1")

// Config configures the handlers. The zero value works.
type Config struct {
	// NoPrivateNetwork makes Request refuse loopback, private, link-local and other
	// addresses that are not public. It checks the dialled address, also after
	// redirects.
	NoPrivateNetwork bool

	// NoMetadata makes Request refuse link-local addresses and the other addresses of
	// cloud metadata services, which serve a machine's credentials. It covers all
	// forms of these addresses and checks like NoPrivateNetwork. Loopback and private
	// addresses are allowed. A proxy from the environment is used: hosts are looked up
	// before the proxy gets them, but the proxy decides what it calls. The command
	// line sets it for worker and serve.
	NoMetadata bool

	// AllowNetworks are addresses that Request may call although NoPrivateNetwork or
	// NoMetadata refuses them. Default: no addresses.
	AllowNetworks []netip.Prefix

	// Logs, if set, is called once for each attempt of Run whose command writes
	// output, at the first output. The returned writer gets all output of the command
	// byte for byte, stdout and stderr in reading order, one Write at a time. It is
	// closed before the attempt ends. Logs may return nil. Errors of the writer do not
	// stop the command. Default: only the end of the output is kept, see RunOutput.
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

// Duration is a time.Duration with the JSON form "1m30s".
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler. It accepts a Go duration, such as
// "90s" or "1m30s". As usual in package json, null changes nothing.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf(`%s is not a duration: write a text such as "90s" or "1m30s"`, raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is not a duration: write for example "90s" or "1m30s"`, text)
	}
	*d = Duration(parsed)
	return nil
}

// limited returns ctx with a timeout of d and the cause weaver.ErrTimeout, or
// without a timeout if d is 0.
func limited(ctx context.Context, d Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(d), weaver.ErrTimeout)
}
