package order

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Paper is a partner in memory that fills each order at once. It remembers keys, as a real
// partner should: a key that comes again gets the first answer.
type Paper struct {
	// Price is the price of fills without a limit price; "100" unless set.
	Price Decimal
	// Behave is asked before each send; nil: every order is filled. The answers "timeout",
	// "lost" (filled, then no answer), "reject", "down", "drop" and "processed" simulate such a partner.
	Behave func(Outgoing) string

	mu   sync.Mutex
	done map[string]ExecResult
}

// Name implements Adapter.
func (*Paper) Name() string { return "paper" }

// Send implements Adapter.
func (p *Paper) Send(ctx context.Context, out Outgoing) (ExecResult, error) {
	how := ""
	if p.Behave != nil {
		how = p.Behave(out)
	}
	switch how {
	case "timeout":
		<-ctx.Done()
		return ExecResult{}, &SendError{Kind: FailTimeout, Message: "paper: timed out"}
	case "down":
		return ExecResult{}, &SendError{Kind: FailDown, Message: "paper: down"}
	case "reject":
		return ExecResult{}, &SendError{Kind: FailRejected, Message: "paper: rejected"}
	case "drop":
		return ExecResult{}, &SendError{Kind: FailBroken, Message: "paper: the connection broke"}
	case "processed":
		return ExecResult{}, &SendError{Kind: FailProcessed, Message: "paper: processed already"}
	}
	res, err := p.fill(out)
	if err == nil && how == "lost" {
		<-ctx.Done()
		return ExecResult{}, &SendError{Kind: FailTimeout, Message: "paper: filled, and timed out"}
	}
	return res, err
}

// Reconcile implements Reconciler.
func (p *Paper) Reconcile(_ context.Context, out Outgoing) (ExecResult, Found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if res, ok := p.done[out.Key]; ok {
		return res, FoundResult, nil
	}
	return ExecResult{}, FoundNothing, nil
}

// Executed returns the number of keys that the partner executed.
func (p *Paper) Executed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.done)
}

func (p *Paper) fill(out Outgoing) (ExecResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if res, ok := p.done[out.Key]; ok {
		return res, nil
	}
	res := ExecResult{Status: OK, ExecutedQty: "0", Broker: Broker{Name: "paper", OrderRef: "paper-" + KeyHash(out.Key)}}
	if out.Profile == "order" {
		var r OrderRequest
		if err := json.Unmarshal(out.Body, &r); err != nil {
			return ExecResult{}, &SendError{Kind: FailRejected, Message: fmt.Sprintf("paper: the order cannot be read: %v", err)}
		}
		px := p.Price
		if px == "" {
			px = "100"
		}
		if r.Price != nil {
			px = *r.Price
		}
		res.Fills = []Fill{{Px: px, Qty: r.Qty, TS: time.Now().UTC()}}
		res.ExecutedQty, res.AvgPrice = r.Qty, &px
	} else {
		res.Response = &Response{Status: 200}
	}
	if p.done == nil {
		p.done = make(map[string]ExecResult)
	}
	p.done[out.Key] = res
	return res, nil
}
