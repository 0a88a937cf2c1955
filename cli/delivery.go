package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/delivery/redis"
	"github.com/goweaver/weaver/internal/text"
)

// hints is the transport of --delivery.
type hints struct {
	delivery.Transport
	shared    bool // it connects processes
	namespace string

	mu     sync.Mutex
	failed error // of the last Push
}

const deliveryForms = "Write --delivery redis://HOST:PORT, rediss:// for TLS, redis+sentinel://HOST,HOST2/MASTER for Sentinel or unix:///path/to/redis.sock, " +
	"or memory within one process, or set WEAVER_DELIVERY. Without it workers find their tasks in the store."

// delivery returns the transport of --delivery, or nil. It does not connect. Messages hold nothing of the URL that may be
// a password.
func (s *session) delivery() (delivery.Transport, error) {
	given := s.flags.Delivery
	switch {
	case given == "":
		return nil, nil
	case s.hints != nil:
		return s.hints, nil
	case given == "memory":
		s.hints = &hints{Transport: delivery.NewMemory(), namespace: s.flags.Namespace}
		return s.hints, nil
	}
	scheme, _, found := strings.Cut(given, "://")
	switch {
	case !found:
		return nil, badInput(deliveryForms, "--delivery (WEAVER_DELIVERY): not the URL of a transport")
	case scheme == "kafka":
		return nil, badInput("Use a Redis, or leave it out: workers find their tasks in the store.", "--delivery kafka://: Kafka is not supported yet")
	case !slices.Contains(redis.Schemes, scheme):
		if strings.Contains(scheme, ":") || !harmless(scheme) {
			scheme = "…"
		}
		return nil, badInput(deliveryForms, "--delivery %s://: unknown kind of transport", scheme)
	}
	t, err := redis.New(given, redis.Options{})
	if err != nil {
		return nil, badInput(deliveryForms, "--delivery (WEAVER_DELIVERY): %w", err)
	}
	s.hints = &hints{Transport: t, shared: true, namespace: s.flags.Namespace}
	return s.hints, nil
}

// closeHints ends the connections of the transport.
func (s *session) closeHints() {
	if s.hints != nil {
		_ = s.hints.Close() // hints may be lost
		s.hints = nil
	}
}

// Push implements delivery.Transport.
func (h *hints) Push(ctx context.Context, namespace string, list []delivery.Hint) error {
	err := h.Transport.Push(ctx, namespace, list)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
	return err
}

// warnOfHints warns if the hints of a verb that has enqueued were not sent.
func (s *session) warnOfHints() {
	if s.hints == nil {
		return
	}
	s.hints.mu.Lock()
	defer s.hints.mu.Unlock()
	if err := s.hints.failed; errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(s.errs, "%s: warning: the transport of --delivery did not answer in time; workers find the tasks in the store\n", s.app.Name)
	} else if err != nil {
		fmt.Fprintf(s.errs, "%s: warning: %s; workers find the tasks in the store\n", s.app.Name, text.Printable(err.Error()))
	}
}

// noLane is a lane without tasks.
var noLane = []delivery.Lane{{Queue: "weaver.check", Type: "weaver.check.v1"}}

// check asks the transport as a worker does, and returns its error.
func (h *hints) check(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := h.Pop(ctx, h.namespace, noLane, 1, 0)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", limit)
	}
	return err
}

// checkLimit limits the wait for an answer of the transport.
const checkLimit = 2 * time.Second

// checkHints warns if the transport cannot be used. The process works without it.
func (s *session) checkHints(ctx context.Context, log *slog.Logger) {
	if s.hints == nil {
		return
	}
	if err := s.hints.check(ctx, checkLimit); err != nil {
		log.Warn("the transport of --delivery cannot be used: workers find their tasks in the store until it can", "error", err)
	}
}

// readyLimit limits the wait of a readiness check for the transport: a process is ready without it.
const readyLimit = 250 * time.Millisecond

// ready is the readiness check of the transport. Everybody sees its error, so it holds no address.
func (h *hints) ready(ctx context.Context) error {
	if h.check(ctx, readyLimit) != nil {
		return errors.New("the transport of --delivery cannot be used, so idle workers start tasks later; doctor says why")
	}
	return nil
}
