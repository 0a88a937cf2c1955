package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/goweaver/weaver/store"
)

// refusing starts a server that answers every connection with an error, or cuts it if code is
// empty. It returns the server's address.
func refusing(t *testing.T, code, message string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := pgproto3.NewBackend(c, c)
			// Read before closing: unread bytes make the client's end a reset instead of EOF.
			if _, err := b.ReceiveStartupMessage(); err == nil && code != "" {
				b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
				_ = b.Flush() // if it fails the client sees a cut connection, and the test fails
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// Errors of connections name the cause and the remedy, without the password.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		address, code, message string
		want                   string
	}{
		"nothing listens":     {address: unused, want: "nothing listens at " + unused + ": check that the server runs"},
		"wrong password":      {code: "28P01", message: `password authentication failed for user "app"`, want: `the password of user "app" is wrong, or there is no such user`},
		"no such user":        {code: "28000", message: `role "app" does not exist`, want: "there is no user \"app\": create it with `createuser app`"},
		"not let in":          {code: "28000", message: `no pg_hba.conf entry for host "10.1.1.1"`, want: "look at its pg_hba.conf"},
		"no such database":    {code: "3D000", message: `database "shop" does not exist`, want: "there is no database \"shop\": create it with `createdb shop`"},
		"may not connect":     {code: "42501", message: `permission denied for database "shop"`, want: "GRANT CONNECT ON DATABASE"},
		"too many":            {code: "53300", message: "sorry, too many clients already", want: "raise its max_connections"},
		"starts":              {code: "57P03", message: "the database system is starting up", want: "starting up or stopping: try again"},
		"something else":      {code: "XX000", message: "out of looms", want: "the server refused the connection: out of looms (XX000)"},
		"cuts the connection": {code: "", want: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := c.address
			if address == "" {
				address = refusing(t, c.code, c.message)
			}
			src := parse(t, "postgres://app:hidden@"+address+"/shop?sslmode=disable")
			_, _, err := src.Connect(t.Context(), false)
			says(t, err, store.ErrUnavailable, "postgres://app:xxxxx@"+address+"/shop?sslmode=disable: the store is unavailable: ", c.want)
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v\nhas the password", err)
			}
		})
	}
}

// A host that does not exist, and name servers that do not answer.
func TestHostLookup(t *testing.T) {
	t.Parallel()
	src := parse(t, "postgres://db.test/shop")
	for want, dns := range map[string]net.DNSError{
		"the host db.test is not known: check its name":                                                     {IsNotFound: true},
		"the host db.test cannot be looked up: check the name servers of this machine (i/o timeout)":        {IsTimeout: true, Err: "i/o timeout"},
		"the host db.test cannot be looked up: check the name servers of this machine (server misbehaving)": {IsTemporary: true, Err: "server misbehaving"},
	} {
		dns.Name = "db.test"
		says(t, src.ConnectError(fmt.Errorf("dial: %w", &dns)), store.ErrUnavailable, want)
	}
}

func TestConnectIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := parse(t, "postgres://app:hidden@127.0.0.1:1/shop?sslmode=disable")
	_, _, err := src.Connect(ctx, false)
	says(t, err, context.Canceled, "connect to postgres://app:xxxxx@127.0.0.1:1/shop")
}

// A server that accepts the connection and never answers.
func TestConnectTimesOut(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	src := parse(t, "postgres://app:hidden@"+l.Addr().String()+"/shop?sslmode=disable&connect_timeout=1")
	_, _, err = src.Connect(t.Context(), false)
	says(t, err, store.ErrUnavailable, "no answer from "+l.Addr().String()+": check host, port and firewalls")
}

func TestNoneCanBeWritten(t *testing.T) {
	t.Parallel()
	src := parse(t, "postgres://one,two/shop")
	err := src.ConnectError(errors.Join(pgconn.ErrReadOnlyConnection, pgconn.ErrReadOnlyConnection))
	says(t, err, store.ErrReadOnly, "none of its servers can be written: name the primary too")
}
