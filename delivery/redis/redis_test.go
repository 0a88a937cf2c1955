package redis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/delivery/deliverytest"
	"github.com/goweaver/weaver/delivery/redis"
	"github.com/goweaver/weaver/internal/redistest"
	"github.com/goweaver/weaver/task"
)

var (
	mail   = delivery.Lane{Queue: "default", Type: "mail"}
	all    = delivery.Lane{Type: "mail"}
	newIDs = task.NewIDs(nil)
)

// open returns a transport with keys of its own.
func open(t *testing.T, url string, o redis.Options) *redis.Transport {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = t.Name()
	}
	tr, err := redis.Open(t.Context(), url, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return tr
}

func hints(l delivery.Lane, n int) []delivery.Hint {
	list := make([]delivery.Hint, n)
	for i := range list {
		list[i] = delivery.Hint{Lane: l, Task: newIDs.New()}
	}
	return list
}

// arrives pushes a hint until it is popped, for as long as Redis is not well.
func arrives(t *testing.T, tr delivery.Transport, pushed, popped delivery.Lane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := hints(pushed, 1)
	for ctx.Err() == nil {
		if err := tr.Push(ctx, "ns", h); err != nil {
			continue
		}
		if ids, err := tr.Pop(ctx, "ns", []delivery.Lane{popped}, 10, 100*time.Millisecond); err == nil && len(ids) == 1 && ids[0] == h[0].Task {
			return
		}
	}
	t.Fatal("the hint did not arrive")
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	deliverytest.Run(t, func(t *testing.T) delivery.Transport { return open(t, s.URL(), redis.Options{}) })
}

func TestConformanceOfACluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--cluster-enabled", "yes")
	if got := s.Do(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383"); got != "+OK" {
		t.Fatal(got)
	}
	for s.Do(t, "SET", "ready", "1") != "+OK" {
		s.Do(t, "WAIT", "1", "50") // CLUSTERDOWN: a new node serves nothing for two seconds
	}
	deliverytest.Run(t, func(t *testing.T) delivery.Transport { return open(t, s.URL(), redis.Options{}) })
}

// Two processes with one prefix share hints, also of queues that a waiting Pop has not seen.
func TestBetweenProcesses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	publisher, worker := open(t, s.URL(), redis.Options{}), open(t, s.URL(), redis.Options{})
	for i := range 5 {
		h := hints(delivery.Lane{Queue: fmt.Sprint("queue", i), Type: "mail"}, 1)
		popped := make(chan []task.ID)
		go func() {
			ids, err := worker.Pop(t.Context(), "ns", []delivery.Lane{all}, 10, time.Minute)
			if err != nil {
				t.Errorf("Pop: %v", err)
			}
			popped <- ids
		}()
		if err := publisher.Push(t.Context(), "ns", h); err != nil {
			t.Errorf("Push: %v", err)
		}
		if ids := <-popped; len(ids) != 1 || ids[0] != h[0].Task {
			t.Errorf("popped %v, want %v", ids, h[0].Task)
		}
	}
	other := open(t, s.URL()+"?prefix=other", redis.Options{Prefix: "other"})
	if err := publisher.Push(t.Context(), "ns", hints(mail, 1)); err != nil {
		t.Fatal(err)
	}
	if ids, err := other.Pop(t.Context(), "ns", []delivery.Lane{mail, all}, 1, 0); err != nil || len(ids) != 0 {
		t.Errorf("popped %v, %v with another prefix", ids, err)
	}
}

// A lane holds so many hints at most, and every key expires.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := open(t, s.URL(), redis.Options{MaxPerLane: 3, Prefix: "p"})
	first := hints(mail, 2)
	for _, h := range [][]delivery.Hint{first, hints(mail, 2500)} {
		if err := tr.Push(t.Context(), "ns", h); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"{p:ns}:hints:default:mail", "{p:ns}:queues:mail", "{p:ns}:news:mail"} {
		if got := s.Do(t, "TTL", key); got != ":300" && got != ":299" {
			t.Errorf("TTL %s = %s, want 300", key, got)
		}
	}
	if got := s.Do(t, "DBSIZE"); got != ":3" {
		t.Errorf("there are %s keys, want 3", got)
	}
	ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{mail}, 100, 0)
	if err != nil || len(ids) != 3 || ids[0] != first[0].Task || ids[1] != first[1].Task {
		t.Errorf("popped %v, %v; want the first 3 hints", ids, err)
	}
}

// Elements that are not task IDs are dropped and counted, also when they are all that is there.
func TestRubbish(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := open(t, s.URL(), redis.Options{Prefix: "p"})
	key := "{p:ns}:hints:default:mail"
	s.Do(t, "RPUSH", key, "", "{\"job\":1}", strings.Repeat("x", 10_000), "01ARZ3NDEKTSV4RRFFQ69G5FA!", "\xff\x00")
	for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
		if ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{mail}, 2, wait); err != nil || len(ids) != 0 {
			t.Errorf("popped %v, %v", ids, err)
		}
	}
	s.Do(t, "RPUSH", key, "rubbish")
	s.Do(t, "RPUSH", "{p:ns}:news:mail", "rubbish")
	s.Do(t, "ZADD", "{p:ns}:queues:mail", "inf", "\xff:{}")
	arrives(t, tr, mail, mail)
	arrives(t, tr, mail, all)
	if got := tr.Stats(); got != (redis.Stats{Rubbish: 6}) {
		t.Errorf("Stats = %+v, want 6 of rubbish", got)
	}
}

// A key of another type under one of our names is deleted by the next call that meets it.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, name := range []string{"hints:default:mail", "queues:mail", "news:mail"} {
		for i, set := range [][]string{{"SET", "", "x"}, {"HSET", "", "x", "y"}, {"SADD", "", "x"}, {"XADD", "", "*", "x", "y"}} {
			for _, popped := range []delivery.Lane{mail, all} {
				prefix := fmt.Sprint(name, i, popped)
				tr := open(t, s.URL(), redis.Options{Prefix: "p"})
				s.Do(t, "FLUSHALL")
				set[1] = "{p:ns}:" + name
				s.Do(t, set...)
				if ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{popped, {Queue: "q", Type: "t"}}, 1, time.Millisecond); err != nil || len(ids) != 0 {
					t.Errorf("%s: popped %v, %v", prefix, ids, err)
				}
				s.Do(t, "FLUSHALL")
				s.Do(t, set...)
				h := hints(mail, 1)
				if err := tr.Push(t.Context(), "ns", h); err != nil {
					t.Errorf("%s: Push: %v", prefix, err)
				}
				if ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{popped}, 1, time.Minute); err != nil || len(ids) != 1 || ids[0] != h[0].Task {
					t.Errorf("%s: popped %v, %v; want %v", prefix, ids, err, h[0].Task)
				}
				if tr.Stats().WrongType == 0 {
					t.Errorf("%s: Stats = %+v", prefix, tr.Stats())
				}
			}
		}
	}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := open(t, s.URL(), redis.Options{})
	for range 3 {
		arrives(t, tr, mail, all)
		if err := tr.Push(t.Context(), "ns", hints(mail, 10)); err != nil {
			t.Fatal(err)
		}
		s.Do(t, "FLUSHALL")
		if ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{mail, all}, 100, 0); err != nil || len(ids) != 0 {
			t.Errorf("popped %v, %v after FLUSHALL", ids, err)
		}
	}
	// The set of queues is lost, also when a Pop reads it again after a second. This process announced the queue a moment ago.
	if ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{all}, 1, 1100*time.Millisecond); err != nil || len(ids) != 0 {
		t.Errorf("popped %v, %v after FLUSHALL", ids, err)
	}
	if err := tr.Push(t.Context(), "ns", hints(mail, 1)); err != nil {
		t.Fatal(err)
	}
	if ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{all}, 1, 5*time.Second); err != nil || len(ids) != 1 {
		t.Errorf("popped %v, %v from a queue that is known", ids, err)
	}
}

// Connections that broke while they were idle cost no error.
func TestIdleConnectionsBreak(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := open(t, s.URL(), redis.Options{})
	arrives(t, tr, mail, mail)
	for range 3 {
		s.Do(t, "CLIENT", "KILL", "TYPE", "normal")
		h := hints(mail, 1)
		if err := tr.Push(t.Context(), "ns", h); err != nil {
			t.Errorf("Push: %v", err)
		}
		s.Do(t, "CLIENT", "KILL", "TYPE", "normal")
		if ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{mail}, 1, 0); err != nil || len(ids) != 1 {
			t.Errorf("popped %v, %v; want %v", ids, err, h[0].Task)
		}
	}
}

// A name that leads to another server after a failover is resolved again, although the old connections still work.
func TestPrimaryMoves(t *testing.T) {
	t.Parallel()
	old, promoted := redistest.Start(t), redistest.Start(t)
	var primary atomic.Pointer[string]
	primary.Store(&old.Addr)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", *primary.Load())
			if err != nil {
				t.Error(err)
				return
			}
			for _, pair := range [][2]net.Conn{{conn, server}, {server, conn}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
	tr := open(t, "redis://"+l.Addr().String(), redis.Options{})
	arrives(t, tr, mail, all)
	old.Do(t, "REPLICAOF", "127.0.0.1", "1")
	primary.Store(&promoted.Addr)
	if err := tr.Push(t.Context(), "ns", hints(mail, 1)); err == nil || !strings.Contains(err.Error(), "is a replica") {
		t.Errorf("Push to the old primary = %v", err)
	}
	if err := tr.Push(t.Context(), "ns", hints(mail, 1)); err != nil {
		t.Errorf("the next Push: %v", err)
	}
	arrives(t, tr, mail, all)
}

// A server that hangs holds neither a call whose context ends nor Close.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := open(t, s.URL(), redis.Options{})
	arrives(t, tr, mail, all)
	s.Pause(t)
	for _, lanes := range [][]delivery.Lane{{mail}, {all}} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := tr.Pop(ctx, "ns", lanes, 1, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pop = %v, want context.DeadlineExceeded", err)
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := tr.Push(ctx, "ns", hints(mail, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Push = %v, want context.DeadlineExceeded", err)
	}
	if err := tr.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := open(t, s.URL(), redis.Options{})
	arrives(t, tr, mail, all)
	waiting := make(chan error)
	go func() {
		ids, err := tr.Pop(t.Context(), "ns", []delivery.Lane{all}, 1, time.Hour)
		if err == nil {
			err = fmt.Errorf("popped %v", ids)
		}
		waiting <- err
	}()
	s.Kill()
	if err := <-waiting; !strings.Contains(err.Error(), s.Addr) {
		t.Errorf("a Pop that waited = %v, want an error with %s", err, s.Addr)
	}
	for range 3 {
		if err := tr.Push(t.Context(), "ns", hints(mail, 1)); err == nil || !strings.Contains(err.Error(), s.Addr) {
			t.Errorf("Push = %v, want an error with %s", err, s.Addr)
		}
		if _, err := tr.Pop(t.Context(), "ns", []delivery.Lane{mail}, 1, time.Hour); err == nil || !strings.Contains(err.Error(), s.Addr) {
			t.Errorf("Pop = %v, want an error with %s", err, s.Addr)
		}
	}
	s.Restart(t)
	arrives(t, tr, mail, all)
	arrives(t, tr, mail, mail)
}

// Open does not need Redis. Its transport works as soon as Redis does.
func TestOpenBeforeRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill()
	tr := open(t, s.URL(), redis.Options{})
	if err := tr.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), s.Addr) {
		t.Errorf("Ping = %v, want an error with %s", err, s.Addr)
	}
	s.Restart(t)
	arrives(t, tr, mail, all)
	if err := tr.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

// A server that accepts connections and says nothing holds neither a call whose context ends nor Close.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if conn, err := l.Accept(); err == nil {
				defer func() { _ = conn.Close() }()
				cancel()
			} else {
				return
			}
		}
	}()
	if _, err := redis.Open(ctx, "redis://"+l.Addr().String(), redis.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v, want context.Canceled", err)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := t.TempDir() + "/redis.sock"
	redistest.Start(t, "--unixsocket", socket)
	arrives(t, open(t, "unix://"+socket+"?db=3", redis.Options{}), mail, all)
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	const secret = "p:a@s/s?w#%ord"
	s := redistest.Start(t, "--requirepass", secret)
	arrives(t, open(t, "redis://:p%3Aa%40s%2Fs%3Fw%23%25ord@"+s.Addr+"/2", redis.Options{}), mail, all)
	arrives(t, open(t, s.URL(), redis.Options{Password: secret}), mail, all)
	for url, want := range map[string]string{
		s.URL():                              "wants a password: write it into the URL",
		"redis://:wrong-secret@" + s.Addr:    "does not accept the user and password",
		"redis://joe:wrong-secret@" + s.Addr: "does not accept the user and password",
	} {
		_, err := redis.Open(t.Context(), url, redis.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), s.Addr) || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("Open(%s) = %v, want %q", url, err, want)
		}
	}
	none := redistest.Start(t)
	arrives(t, open(t, "redis://:unused@"+none.Addr, redis.Options{}), mail, all)
}

// What Redis refuses while it runs is an error with advice, and over as soon as its cause is.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr := open(t, s.URL(), redis.Options{})
	arrives(t, tr, mail, all)
	for _, c := range []struct {
		set, unset []string
		want       string
	}{
		{[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}, "is out of memory: raise maxmemory"},
		{[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}, "is a replica: write the address of the primary"},
		{[]string{"ACL", "SETUSER", "default", "-rpush"}, []string{"ACL", "SETUSER", "default", "+rpush"}, "grant the ACL rules"},
	} {
		s.Do(t, c.set...)
		if err := tr.Push(t.Context(), "ns", hints(mail, 1)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.Addr) {
			t.Errorf("Push after %q = %v, want %q", c.set, err, c.want)
		}
		s.Do(t, c.unset...)
		arrives(t, tr, mail, all)
	}
}

func TestOtherServers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	for _, scheme := range []string{"redis", "rediss"} {
		tr, err := redis.Open(t.Context(), scheme+"://"+l.Addr().String(), redis.Options{})
		if err == nil {
			err = errors.Join(tr.Push(t.Context(), "ns", hints(mail, 1)), tr.Close())
		}
		if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("%s: %v, want an error with the address", scheme, err)
		}
		if scheme == "rediss" && err != nil && !strings.Contains(err.Error(), "write redis:// instead of rediss://") {
			t.Errorf("%s: %v, want advice", scheme, err)
		}
	}
}
