package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

// migrateAdvice returns the remedy for a missing or outdated schema.
func migrateAdvice(shown string) string {
	return fmt.Sprintf("run `weaver migrate up --store '%s'` or call db.Migrate", shown)
}

// refusal is an error with its own text and a sentinel that callers can match.
type refusal struct {
	text  string
	kind  error // a sentinel of package store; may be nil
	cause error // the driver's error; may be nil
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Unwrap returns the kind and the cause.
func (r *refusal) Unwrap() []error {
	var list []error
	for _, err := range []error{r.kind, r.cause} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// connectError describes why a connection could not be made, and the remedy. It contains no
// password.
func (s *source) connectError(err error) error {
	if err == nil {
		return nil
	}
	kind := store.ErrUnavailable
	var refused *pgconn.PgError
	advice := ""
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("connect to %s: %w", s.shown, context.Canceled)
	case errors.As(err, &refused):
		advice, kind = s.serverRefuses(refused)
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		advice, kind = "none of its servers can be written: name the primary too", store.ErrReadOnly
	default:
		advice = s.unreachable(err)
	}
	return &refusal{text: fmt.Sprintf("%s: %v: %s", s.shown, kind, advice), kind: kind, cause: err}
}

// serverRefuses handles an error that the server returned to a new connection.
func (s *source) serverRefuses(err *pgconn.PgError) (advice string, kind error) {
	user, database := s.config.User, s.config.Database
	if database == "" {
		database = user // the server's default
	}
	switch err.Code {
	case "28P01":
		return fmt.Sprintf("the password of user %q is wrong, or there is no such user", user), store.ErrUnavailable
	case "28000":
		if strings.Contains(err.Message, "does not exist") {
			return fmt.Sprintf("there is no user %q: create it with `createuser %s`, or name another", user, user), store.ErrUnavailable
		}
		return fmt.Sprintf("the server does not let user %q in from here: look at its pg_hba.conf (%s)", user, err.Message), store.ErrUnavailable
	case "3D000":
		return fmt.Sprintf("there is no database %q: create it with `createdb %s`, or name another", database, database), store.ErrUnavailable
	case "42501":
		return fmt.Sprintf("user %q may not connect to database %q: GRANT CONNECT ON DATABASE", user, database), store.ErrUnavailable
	case "53300":
		return "the server has no connection left: raise its max_connections, or let fewer programs connect", store.ErrUnavailable
	case "57P03":
		return fmt.Sprintf("the server is starting up or stopping: try again (%s)", err.Message), store.ErrUnavailable
	}
	return fmt.Sprintf("the server refused the connection: %s (%s)", err.Message, err.Code), store.ErrUnavailable
}

// unreachable handles a server that did not answer.
func (s *source) unreachable(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("the host %s is not known: check its name", dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %s cannot be looked up: check the name servers of this machine (%s)", dns.Name, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s: check that the server runs and listens there, and the URL's host and port", s.address(err))
	case errors.Is(err, syscall.ENOENT):
		return fmt.Sprintf("there is no socket of a server in %s: check that the server runs, or name a host", s.config.Host)
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err), errors.As(err, &op) && op.Timeout():
		return fmt.Sprintf("no answer from %s: check host, port and firewalls", s.address(err))
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return "the server has no TLS: switch it on there, or say sslmode=disable on a network that you trust"
	case strings.Contains(err.Error(), "x509: "), strings.Contains(err.Error(), "tls: "):
		return "the TLS certificate of the server is not accepted: check sslmode and sslrootcert (" + last(err).Error() + ")"
	}
	return last(err).Error()
}

// address returns the address of the failed attempt, or else the address in the URL.
func (s *source) address(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		return op.Addr.String()
	}
	return net.JoinHostPort(s.config.Host, fmt.Sprint(s.config.Port))
}

// last returns the innermost error: the outer ones repeat the user, the database and the address.
func last(err error) error {
	for {
		var many interface{ Unwrap() []error }
		if next := errors.Unwrap(err); next != nil {
			err = next
		} else if errors.As(err, &many) && len(many.Unwrap()) > 0 {
			list := many.Unwrap()
			err = list[len(list)-1]
		} else {
			return err
		}
	}
}
