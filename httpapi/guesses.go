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

// guesses decides which passwords are verified.
//
// An address may send ten wrong passwords for an account in a minute. Then its passwords for that
// account are rejected unverified until the minute ends, even a right one. So an attacker cannot
// lock out an account for other addresses, or other accounts for its own address. Guesses of many
// addresses for one account, or of one address for many accounts, are slowed down.
type guesses struct {
	key []byte // key of the digests

	pairs     *failures // by address and account
	accounts  *failures // by account, for all addresses
	addresses *failures // by address, for all accounts
	all       *failures // all failures, under one key

	turns *shares // by address: one guess at a time is verified
	cpu   *shares // concurrent derivations

	rounds atomic.Int64 // derived so far

	mu      sync.Mutex
	known   map[string][]byte  // by name: the digest of a verified password, so that a request needs no derivation
	flights map[string]*flight // by address, account and digest
}

// flight is a guess that is being verified, for all requests with it.
type flight struct {
	done  chan struct{}
	right bool
	err   error // it was not verified
}

const (
	guessWait   = 20 * time.Second       // maximum wait for the verification of a guess
	slowAfter   = 20                     // wrong guesses of an account or address in a minute without a delay
	slowStep    = 100 * time.Millisecond // added delay for each further one
	slowMost    = 2 * time.Second
	hurriedFrom = 100                    // wrong guesses of all accounts and addresses in a minute without a pause
	pause       = 250 * time.Millisecond // pause after each derivation above that
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

// digest returns a keyed hash of texts, of fixed length.
func (g *guesses) digest(texts ...string) []byte {
	m := hmac.New(sha256.New, g.key)
	for _, text := range texts {
		inner := sha256.Sum256([]byte(text))
		_, _ = m.Write(inner[:])
	}
	return m.Sum(nil)
}

// Authorize accepts `Authorization: Basic …`. A verified password needs no second derivation.
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
		case f.err != nil && !mine && errors.Is(f.err, context.Canceled): // the request that began the flight was cancelled
			continue
		case f.err != nil:
			return Principal{}, f.err
		case !f.right:
			return Principal{}, &challenge{header: basicChallenge, counted: true}
		}
		return p.list[name].Principal, nil
	}
}

// admit counts a guess that is not known to be right, before its result is known: concurrent
// guesses are counted one by one. A nil flight means that the password is right. If mine is true
// the caller must verify the guess.
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

// look verifies a guess.
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

// judge derives the password when it is its turn. An account that does not exist, or has fewer
// rounds, takes the same time.
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

// slow waits longer the more wrong guesses there were.
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
