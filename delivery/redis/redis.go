package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/group"
)

const (
	// keyTTL is the lifetime of a key after its last push. Older hints are worthless: their tasks were sent again.
	keyTTL = 5 * time.Minute
	// answerTimeout limits the wait for a reply of Redis, in addition to the time for which a command blocks.
	answerTimeout = 5 * time.Second
	// dialTimeout limits connecting and authenticating.
	dialTimeout = 3 * time.Second
)

// Options of a Transport. The zero value works.
type Options struct {
	Username, Password string      // instead of those in the URL
	TLS                *tls.Config // instead of the system's root certificates; needs a rediss URL
	Prefix             string      // of all keys, instead of that in the URL; default "weaver"
	MaxPerLane         int         // hints held for one lane, default delivery.MaxPerLane; new ones above it are dropped
}

// Transport carries hints through Redis. Use Open or New.
type Transport struct {
	target target
	max    int
	group  *group.Group // its context ends with Close

	connecting chan struct{} // holds a token while one call connects
	attempt    atomic.Pointer[attempt]
	client     atomic.Pointer[rueidis.Client]

	mu        sync.Mutex
	announced map[string]time.Time // key of a lane → time when its queue was added to the set
	known     map[string]*known    // key of a set → queues read from it
	turn      atomic.Uint64        // rotates the lane that a Pop begins with

	stats struct{ rubbish, wrongType atomic.Int64 }
}

var _ delivery.Transport = (*Transport)(nil)

// Open returns a transport through the Redis of a URL, in one of the forms
//
//	redis://USER:PASSWORD@HOST:PORT/DATABASE        one server; several hosts, separated by commas, for a cluster
//	rediss://…                                      the same over TLS
//	redis+sentinel://USER:PASSWORD@HOST,HOST2/MASTER/DATABASE
//	rediss+sentinel://…                             the same over TLS
//	unix:///path/to/redis.sock?db=DATABASE
//
// Further parameters are prefix, sentinel_user and sentinel_password. TLS accepts the system's root certificates.
//
// Open fails if the URL is wrong or Redis refuses the credentials. It does not fail if Redis is not reachable: Push and Pop
// return errors until it is. Ping tells.
func Open(ctx context.Context, url string, o Options) (*Transport, error) {
	t, err := New(url, o)
	if err != nil {
		return nil, err
	}
	if err := t.Ping(ctx); err != nil && (ctx.Err() != nil || errors.Is(err, errRefused)) {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// New is Open without a connection: it fails only if the URL is wrong.
func New(url string, o Options) (*Transport, error) {
	target, err := parse(url)
	if err != nil {
		return nil, err
	}
	if o.Username != "" {
		target.option.Username = o.Username
	}
	if o.Password != "" {
		target.option.Password = o.Password
	}
	if o.Prefix != "" {
		target.prefix = o.Prefix
	}
	if o.TLS != nil {
		if target.option.TLSConfig == nil {
			return nil, errors.New("Options.TLS is set, but the URL of Redis is not one of TLS; use rediss:// or rediss+sentinel://")
		}
		target.option.TLSConfig = o.TLS
		target.option.Sentinel.TLSConfig = o.TLS
	}
	t := &Transport{
		target: target, max: o.MaxPerLane, group: group.New(context.Background()),
		connecting: make(chan struct{}, 1), announced: make(map[string]time.Time), known: make(map[string]*known),
	}
	if t.max <= 0 {
		t.max = delivery.MaxPerLane
	}
	t.configure(&t.target.option)
	return t, nil
}

// configure sets what no URL changes.
func (t *Transport) configure(o *rueidis.ClientOption) {
	o.ClientName = "weaver"
	o.DisableCache = true
	o.DisableRetry = true // retries without end; do retries once
	o.Dialer.Timeout, o.Sentinel.Dialer.Timeout = dialTimeout, dialTimeout
	o.ConnWriteTimeout = answerTimeout
	o.PipelineMultiplex = -1 // one connection for pushes, and one for each waiting Pop
	o.ReadBufferEachConn, o.WriteBufferEachConn = 1<<15, 1<<15
	o.RingScaleEachConn = 8
	o.Sentinel.TopologyRefreshInterval = 5 * time.Second
	o.ClusterOption.ShardsRefreshInterval = 10 * time.Second
	o.ClusterOption.MaxMovedRedirections = 5
	o.DialCtxFn = t.dial
}

// Ping returns nil if Redis answers, and else the error that Push and Pop would return.
func (t *Transport) Ping(ctx context.Context) error {
	return t.do(ctx, 0, func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Ping().Build()).Error()
	})
}

// Close implements delivery.Transport.
func (t *Transport) Close() error {
	t.group.Cancel(delivery.ErrClosed)
	err := t.group.Wait()
	t.connecting <- struct{}{} // connect sees that the group has ended
	defer func() { <-t.connecting }()
	if c := t.client.Swap(nil); c != nil {
		(*c).Close()
	}
	return err
}

// Stats are counters since Open.
type Stats struct {
	Rubbish   int64 // popped elements that were not task IDs
	WrongType int64 // deleted keys that had another type
}

// Stats returns the counters.
func (t *Transport) Stats() Stats {
	return Stats{Rubbish: t.stats.rubbish.Load(), WrongType: t.stats.wrongType.Load()}
}
