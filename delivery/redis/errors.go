package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/goweaver/weaver/delivery"
)

// errRefused marks errors that last until the URL or the configuration of Redis changes.
var errRefused = errors.New("refused")

// advices maps the beginning of an error of Redis, or a part of it after "…", to a sentence.
var advices = []struct {
	text, advice string
	lasting      bool
}{
	{"NOAUTH", "wants a password: write it into the URL, as in redis://:PASSWORD@HOST:PORT", true},
	{"WRONGPASS", "does not accept the user and password of the URL", true},
	{"ERR invalid password", "does not accept the password of the URL", true},
	{"…without any password configured", "has no password: take it out of the URL, or set requirepass", true},
	{"…DB index is out of range", "does not have the database of the URL: use 0, or raise databases in redis.conf", true},
	{"…SELECT is not allowed in cluster mode", "is a cluster, which has database 0 only: take the database out of the URL", true},
	{"DENIED", "is in protected mode and accepts local connections only: set a password (requirepass)", true},
	{"NOPERM", "does not permit a command: grant the ACL rules ~{weaver:* +@list +@sortedset +@connection +expire +unlink +type", false},
	{"…No such master with that name", "is a Sentinel that does not know the master set of the URL: write its name as in redis+sentinel://HOST/NAME", false},
	{"…unknown command", "is too old: Redis 7 or later is needed, or Valkey", false},
	{"READONLY", "is a replica: write the address of the primary into the URL, or those of the Sentinels (redis+sentinel://)", false},
	{"OOM", "is out of memory: raise maxmemory, or set maxmemory-policy to one that evicts, such as allkeys-lru", false},
	{"MISCONF", "cannot save to its disk and refuses writes", false},
	{"LOADING", "is loading its data", false},
}

// explain returns the error that callers see: that of ctx, ErrClosed, or one with the address and advice.
func (t *Transport) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, delivery.ErrClosed) || t.group.Context().Err() != nil:
		return delivery.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	err = t.withoutPasswords(err)
	addr := t.target.addr()
	for _, a := range advices {
		part, isPart := strings.CutPrefix(a.text, "…")
		if text := err.Error(); !strings.HasPrefix(text, part) && (!isPart || !strings.Contains(text, part)) {
			continue
		}
		if a.lasting {
			return fmt.Errorf("the Redis at %s %s (%w: %w)", addr, a.advice, errRefused, err)
		}
		return fmt.Errorf("the Redis at %s %s (%w)", addr, a.advice, err)
	}
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return fmt.Errorf("the Redis at %s does not use TLS on this port: write redis:// instead of rediss:// (%w: %w)", addr, errRefused, err)
	case errors.Is(err, context.DeadlineExceeded) && t.target.option.TLSConfig != nil:
		return fmt.Errorf("the Redis at %s does not answer; does it use TLS on this port? (%w)", addr, err)
	}
	return fmt.Errorf("the Redis at %s: %w", addr, err)
}

// withoutPasswords makes sure that no password is in an error.
func (t *Transport) withoutPasswords(err error) error {
	text := err.Error()
	for _, password := range []string{t.target.option.Password, t.target.option.Sentinel.Password} {
		if password != "" {
			text = strings.ReplaceAll(text, password, "***")
		}
	}
	if text != err.Error() {
		return errors.New(text)
	}
	return err
}

// redisError reports whether err is an error reply that begins with a code.
func redisError(err error, code string) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(reply.Error(), code)
}

// broken reports whether err is one of the connection.
func broken(err error) bool {
	if err == nil || rueidis.IsRedisNil(err) || errors.Is(err, delivery.ErrClosed) || errors.Is(err, errSilent) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	_, reply := rueidis.IsRedisErr(err)
	return !reply
}
