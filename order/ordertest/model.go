package ordertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/goweaver/weaver/order"
)

// model is the protocol as plainly as possible. It shares no code with the stores.
type model struct {
	rnd    *rand.Rand
	orders map[string]*modelled
	log    []string
}

type modelled struct {
	key             string
	state           string // of the row
	ledger          string
	attempts, sends int
	token           int64
	open, unknown   bool // a send
	doubt, held     bool // of the ledger; of the row
}

func newModel(seed uint64) *model {
	return &model{rnd: rand.New(rand.NewPCG(seed, seed)), orders: make(map[string]*modelled)}
}

// step does one random operation on both and returns how they differ; "" if they do not.
func (m *model) step(w *world) string {
	key := "k" + strconv.Itoa(m.rnd.IntN(6))
	o := m.orders[key]
	var verb string
	var got, want error
	switch m.rnd.IntN(12) {
	case 0, 1:
		verb = "accept"
		list, err := w.s.AcceptOrders(w.ctx(), w.ns, nil, request(key))
		if err != nil {
			return err.Error()
		}
		if list[0].Created != (o == nil) {
			return fmt.Sprintf("accept %s: created %t", key, list[0].Created)
		}
		if o == nil {
			m.orders[key] = &modelled{key: key, state: "pending", ledger: "accepted"}
		}
	case 2, 3, 4:
		return m.claim(w)
	case 5, 6:
		verb = "send"
		l := m.lease(o, key)
		errs, err := w.s.SendOrders(w.ctx(), w.ns, order.Send{Lease: l, EndsAt: time.Now()})
		if err != nil {
			return err.Error()
		}
		got = errs[0]
		if want = m.holds(o, l); want == nil {
			o.sends++
			o.open = true
		}
	case 7, 8, 9:
		return m.settle(w, o, key)
	case 10:
		verb = "requeue"
		confirmed := m.rnd.IntN(2) == 0
		_, got = w.s.OperateOrder(w.ctx(), w.ns, order.Requeue{Key: key, Confirmed: confirmed})
		switch {
		case o == nil:
			want = order.ErrNotFound
		case o.state != "aborted":
			want = order.ErrState
		case o.doubt && !confirmed:
			want = order.ErrInDoubt
		default:
			*o = modelled{key: key, state: "pending", ledger: "accepted", sends: o.sends, token: o.token}
		}
	case 11:
		return m.operate(w, o, key)
	}
	m.log = append(m.log, verb+" "+key)
	if !same(got, want) {
		return fmt.Sprintf("%s %s: %v, want %v", verb, key, got, want)
	}
	return m.compare(w, key)
}

func same(got, want error) bool {
	if want == nil {
		return got == nil
	}
	return errors.Is(got, want)
}

func (m *model) lease(o *modelled, key string) order.Lease {
	l := order.Lease{Key: key, Token: int64(m.rnd.IntN(2))}
	if o != nil && m.rnd.IntN(5) > 0 {
		l.Token = o.token
	}
	return l
}

func (m *model) holds(o *modelled, l order.Lease) error {
	switch {
	case o == nil:
		return order.ErrNotFound
	case o.state != "sending" || o.token != l.Token:
		return order.ErrLeaseLost
	}
	return nil
}

func (m *model) claim(w *world) string {
	m.log = append(m.log, "claim")
	got, err := w.s.ClaimOrders(w.ctx(), w.ns, order.ClaimRequest{Worker: "w", Lease: lease, Limit: 1 + m.rnd.IntN(3)})
	if err != nil {
		return err.Error()
	}
	for _, r := range got.Claimed {
		o := m.orders[r.Key]
		if o == nil || o.state != "pending" && o.state != "failed" || o.held {
			return fmt.Sprintf("claimed %s, which is %+v", r.Key, o)
		}
		o.state = "sending"
		o.token++
		if problem := m.compare(w, r.Key); problem != "" {
			return problem
		}
	}
	if len(got.Claimed) == 0 {
		for _, o := range m.orders {
			if (o.state == "pending" || o.state == "failed") && !o.held {
				return "nothing was claimed, and " + o.key + " is due"
			}
		}
	}
	return ""
}

func (m *model) settle(w *world, o *modelled, key string) string {
	end := order.Settlement{Lease: m.lease(o, key), Digest: request(key).Digest, Counts: m.rnd.IntN(2) == 0, Unknown: m.rnd.IntN(2) == 0}
	end.Verdict = []order.Verdict{order.VerdictSucceeded, order.VerdictRetry, order.VerdictAborted, order.VerdictRelease}[m.rnd.IntN(4)]
	if end.Verdict == order.VerdictSucceeded {
		end.Result = success
	} else if o != nil {
		end.Result = *order.NoResult(&order.Row{Key: key}, order.ReasonDown, time.Now())
	}
	m.log = append(m.log, "settle "+string(end.Verdict)+" "+key)
	got := w.settle(end)
	var want error
	switch {
	case o == nil:
		want = order.ErrNotFound
	case end.Verdict == order.VerdictSucceeded:
		if o.ledger == "failed" && !o.doubt {
			want = order.ErrState
			break
		}
		o.state, o.ledger, o.open, o.unknown, o.doubt = "succeeded", "succeeded", false, false, false
	default:
		if want = m.holds(o, end.Lease); want != nil {
			break
		}
		if end.Verdict == order.VerdictRelease {
			if o.open {
				want = order.ErrState
			} else {
				o.state = "pending"
			}
			break
		}
		if end.Counts {
			o.attempts++
		}
		o.open, o.unknown = false, end.Unknown
		if o.state = "failed"; end.Verdict == order.VerdictAborted {
			o.state, o.ledger, o.doubt = "aborted", "failed", end.Unknown
		}
	}
	if !same(got.Err, want) {
		return fmt.Sprintf("settle %s %s: %v, want %v", end.Verdict, key, got.Err, want)
	}
	return m.compare(w, key)
}

func (m *model) operate(w *world, o *modelled, key string) string {
	final := o != nil && slices.Contains([]string{"succeeded", "aborted"}, o.state)
	switch m.rnd.IntN(4) {
	case 0:
		m.log = append(m.log, "withdraw "+key)
		ack, err := w.s.OperateOrder(w.ctx(), w.ns, order.Withdraw{Key: key})
		switch {
		case o == nil:
			if !errors.Is(err, order.ErrNotFound) {
				return fmt.Sprint("withdraw: ", err)
			}
			return ""
		case err != nil:
			return err.Error()
		case ack.InDoubt != (!final && o.sends > 0):
			return fmt.Sprintf("withdraw %s of %+v: in doubt %t", key, o, ack.InDoubt)
		case !final && o.sends == 0:
			o.state, o.ledger, o.doubt = "aborted", "failed", false
			o.token++
		}
	case 1:
		m.log = append(m.log, "hold")
		w.operate(order.Hold{})
		for _, o := range m.orders {
			if o.ledger == "accepted" {
				o.held = true
				if o.state == "sending" {
					o.state, o.open, o.unknown = "pending", false, o.unknown || o.open
					o.token++
				}
			}
		}
	default:
		m.log = append(m.log, "release")
		w.operate(order.Release{})
		for _, o := range m.orders {
			o.held = false
		}
	}
	return m.compare(w, key)
}

// compare reads an order from the store.
func (m *model) compare(w *world, key string) string {
	o := m.orders[key]
	got, err := w.s.GetOrder(w.ctx(), w.ns, key)
	if o == nil {
		if !errors.Is(err, order.ErrNotFound) {
			return fmt.Sprintf("%s: %v, want none", key, err)
		}
		return ""
	}
	if err != nil {
		return err.Error()
	}
	r := got.Row
	is := modelled{key, string(r.State), string(got.Entry.State), r.Attempts, r.SendNo, r.Token, r.SendOpen, r.Unknown, got.Entry.Unknown, r.Held}
	if is != *o {
		return fmt.Sprintf("%s is %+v, want %+v", key, is, *o)
	}
	return ""
}
