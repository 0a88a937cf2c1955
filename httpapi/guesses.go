package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// guesses decides which passwords are looked at.
//
// An address may send ten wrong passwords for an account in a minute; then none of it for
// that account is looked at, not even the right one, until the minute ends. So nobody
// locks out an account for other addresses, or other accounts for its own address. What
// many addresses try on one account, or one address on many accounts, is slowed down.
type guesses struct {
	key []byte // of digests and keys

	pairs     *failures // by address and account
	accounts  *failures // by account, of all addresses
	addresses *failures // by address, of all accounts
	all       *failures // of all, under one key

	turns *shares // of addresses: one guess at a time is looked at
	cpu   *shares // derivations

	rounds atomic.Int64 // that were derived

	mu      sync.Mutex
	known   map[string][]byte  // by name: the digest of a password that was right, so that a request costs no derivation
	flights map[string]*flight // by address, account and digest
}

// flight is a guess that is being looked at, for all requests that have it.
type flight struct {
	done  chan struct{}
	right bool
	err   error // it was not looked at
}

const (
	guessWait   = 20 * time.Second       // for a guess to be looked at
	slowAfter   = 20                     // wrong ones of an account or address in a minute, without a delay
	slowStep    = 100 * time.Millisecond // of the delay, for each further one
	slowMost    = 2 * time.Second
	hurriedFrom = 100                    // wrong ones in a minute of all accounts and addresses, without a pause
	pause       = 250 * time.Millisecond // behind each derivation then
)

func newGuesses() *guesses {
	g := &guesses{
		key: make([]byte, 32), pairs: newFailures(), accounts: newFailures(), addresses: newFailures(), all: newFailures(),
		turns: newShares(1<<40, 1), cpu: newShares(int64(max(1, runtime.GOMAXPROCS(0)/2)), 1),
		known: make(map[string][]byte), flights: make(map[string]*flight),
	}
	_, _ = rand.Read(g.key) // it never fails
	return g
}

// digest hides a text, and gives it a length.
func (g *guesses) digest(texts ...string) []byte {
	m := hmac.New(sha256.New, g.key)
	for _, text := range texts {
		inner := sha256.Sum256([]byte(text))
		_, _ = m.Write(inner[:])
	}
	return m.Sum(nil)
}

// Authorize takes `Authorization: Basic …`. A password that was right costs no second
// derivation.
func (p *Passwords) Authorize(r *http.Request) (Principal, error) {
	name, password, given := r.BasicAuth()
	if !given {
		return Principal{}, &challenge{header: basicChallenge}
	}
	addr := addressOf(r)
	pair, digest := string(p.digest(addr, name)), p.digest(password)
	for {
		f, mine, err := p.admit(name, pair, digest)
		switch {
		case err != nil:
			return Principal{}, err
		case f == nil:
			return p.list[name].Principal, nil
		case mine:
			p.look(r.Context(), f, addr, name, password, pair, digest)
		}
		select {
		case <-f.done:
		case <-r.Context().Done():
			return Principal{}, r.Context().Err()
		}
		switch {
		case f.err != nil && !mine && errors.Is(f.err, context.Canceled): // the request that asked first has gone
			continue
		case f.err != nil:
			return Principal{}, f.err
		case !f.right:
			return Principal{}, &challenge{header: basicChallenge, counted: true}
		}
		return p.list[name].Principal, nil
	}
}

// admit counts a guess that is not known to be right, before anything tells whether it is:
// guesses that are sent together are counted one by one. nil: the password is right.
// mine: the caller must look at the guess.
func (g *guesses) admit(name, pair string, digest []byte) (f *flight, mine bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := pair + string(digest)
	if f := g.flights[key]; f != nil {
		return f, false, nil
	}
	if g.pairs.over(pair) {
		return nil, false, waitAMinute()
	}
	if hmac.Equal(g.known[name], digest) {
		return nil, false, nil
	}
	g.pairs.take(pair)
	f = &flight{done: make(chan struct{})}
	g.flights[key] = f
	return f, true, nil
}

// look finds out whether a guess is right.
func (p *Passwords) look(ctx context.Context, f *flight, addr, name, password, pair string, digest []byte) {
	account := string(p.digest(name))
	f.right, f.err = p.judge(ctx, addr, account, name, password)
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.right {
		p.known[name] = digest
	}
	if f.right || f.err != nil {
		p.pairs.giveBack(pair)
	}
	delete(p.flights, pair+string(digest))
	close(f.done)
}

// judge derives the password when it is its turn. It takes as long for an account that
// does not exist, and for one with fewer rounds.
func (p *Passwords) judge(ctx context.Context, addr, account, name, password string) (right bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, guessWait, errCrowded)
	defer cancel()
	crowded := func(err error) error {
		if errors.Is(err, errCrowded) {
			return waitAMinute()
		}
		return err
	}
	done, err := p.turns.take(ctx, addr, 1)
	if err != nil {
		return false, crowded(err)
	}
	defer done()
	if err := p.slow(ctx, max(p.accounts.count(account), p.addresses.count(addr))); err != nil {
		return false, crowded(err)
	}
	ready, err := p.cpu.take(ctx, addr, 1)
	if err != nil {
		return false, crowded(err)
	}
	defer ready()
	if p.all.count("") >= hurriedFrom {
		if err := wait(ctx, pause); err != nil {
			return false, crowded(err)
		}
	}
	line, exists := p.list[name]
	if !exists {
		line = passwordLine{rounds: p.most, salt: make([]byte, 16), hash: make([]byte, sha256.Size)}
	}
	hash, err := p.derive(password, line.salt, line.rounds)
	if err != nil {
		return false, err
	}
	if rest := p.most - line.rounds; rest > 0 {
		_, _ = p.derive(password, line.salt, rest)
	}
	if right = hmac.Equal(hash, line.hash) && exists; !right {
		const most = 1 << 20
		p.accounts.add(account, most)
		p.addresses.add(addr, most)
		p.all.add("", most)
	}
	return right, nil
}

func (g *guesses) derive(password string, salt []byte, rounds int) ([]byte, error) {
	g.rounds.Add(int64(rounds))
	return pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
}

// slow waits the longer, the more wrong ones there were.
func (g *guesses) slow(ctx context.Context, wrong int) error {
	if wrong < slowAfter {
		return nil
	}
	return wait(ctx, min(slowMost, time.Duration(wrong-slowAfter+1)*slowStep))
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
