package soak_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// bundle is the number of consecutive numbers enqueued together.
const bundle = 5

// inCallersTx reports whether a bundle is enqueued in a transaction of the user that also writes to the user's table.
func inCallersTx(n int) bool { return n/bundle%3 == 2 }

const jobName = "storm"

// producer enqueues missing tasks up to the last number that it received.
type producer struct {
	db      *sqlite.DB
	client  *weaver.Client
	acks    *os.File
	acked   map[int]bool
	log     *stepLog
	plan    plan
	bundles atomic.Int64 // acknowledged bundles
}

func acksPath(dir string) string { return filepath.Join(dir, "acknowledged") }

// runProducer reads numbers from in, one per line, and enqueues all tasks below them. It writes acknowledgements to a
// file. It repeats unacknowledged enqueues of an earlier process under the same idempotency key.
func runProducer(ctx context.Context, o childConfig, in io.Reader) error {
	log, err := openStepLog(o.Dir, o.Life)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, o.Dir)
	if err != nil {
		return err
	}
	p := &producer{db: db, acked: make(map[int]bool), log: log, plan: o.Plan}
	if p.client, err = weaver.NewClient(db, weaver.ClientConfig{Logger: stderrLog()}); err != nil {
		return err
	}
	acks, err := readAcks(o.Dir)
	if err != nil {
		return err
	}
	for _, a := range acks {
		p.acked[a.n] = true
	}
	if p.acks, err = os.OpenFile(acksPath(o.Dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	if err := errors.Join(p.submitJob(ctx, o.Nodes), p.enqueueUnserved(ctx)); err != nil {
		return err
	}
	v, err := newVisits(o, db)
	if err != nil {
		return err
	}
	visited := make(chan error, 1)
	go func() { visited <- v.run(ctx) }()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		target, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		if err := p.enqueue(ctx, min(target, o.Tasks)); err != nil {
			return err
		}
	}
	return errors.Join(<-visited, db.Close(), p.acks.Close(), log.close())
}

// enqueue enqueues the tasks missing below target, several bundles at a time.
func (p *producer) enqueue(ctx context.Context, target int) error {
	bundles := make(chan []int)
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for ns := range bundles {
				if errs[i] == nil {
					errs[i] = p.bundle(ctx, ns)
				}
			}
		})
	}
	for from := 0; from < target; from += bundle {
		var missing []int
		for n := from; n < min(from+bundle, target); n++ {
			if !p.acked[n] {
				p.acked[n] = true
				missing = append(missing, n)
			}
		}
		if len(missing) > 0 {
			bundles <- missing
		}
	}
	close(bundles)
	wg.Wait()
	return errors.Join(errs...)
}

const sqlOrder = `INSERT INTO orders (n, task) VALUES (?, ?)`

// bundle enqueues some tasks and records their acknowledgement.
func (p *producer) bundle(ctx context.Context, ns []int) error {
	drafts := make([]weaver.Draft, len(ns))
	for i, n := range ns {
		drafts[i] = draftOf(n)
	}
	if !inCallersTx(ns[0]) {
		got, err := p.client.EnqueueTasks(ctx, drafts...)
		if err != nil {
			return err
		}
		return p.acknowledged(ns, got)
	}
	tx, err := p.db.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	got, err := p.client.InTx(sqlite.Tx(tx)).EnqueueTasks(ctx, drafts...)
	if err != nil {
		return err
	}
	for i, e := range got {
		if e.Disposition != store.DispositionCreated {
			continue // enqueued by an earlier life, with its row
		}
		if _, err := tx.ExecContext(ctx, sqlOrder, ns[i], e.ID.String()); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return p.acknowledged(ns, got)
}

// acknowledged records the result of Enqueue immediately.
func (p *producer) acknowledged(ns []int, got []weaver.Enqueued) error {
	var text strings.Builder
	for i, e := range got {
		fmt.Fprintf(&text, "%d %s\n", ns[i], e.ID)
	}
	_, err := p.acks.WriteString(text.String())
	if p.bundles.Add(1) == p.plan.Lines {
		time.AfterFunc(p.plan.Delay, func() { dieNow(p.log, "the-producer") })
	}
	return err
}

// ack is one acknowledged task; n is jobAck for the job.
type ack struct {
	n  int
	id string
}

const jobAck = -1

func readAcks(dir string) (all []ack, err error) {
	err = readLines(acksPath(dir), func(text string) error {
		n, id, ok := strings.Cut(text, " ")
		if !ok {
			return fmt.Errorf("%q has one word, want two", text)
		}
		a := ack{id: id}
		if a.n, err = strconv.Atoi(n); err != nil {
			return err
		}
		all = append(all, a)
		return nil
	})
	return all, err
}

// submitJob submits the job unless it exists.
func (p *producer) submitJob(ctx context.Context, nodes int) error {
	found, _, err := p.client.Jobs(ctx, store.JobFilter{Name: jobName})
	if err != nil || len(found) > 0 || nodes == 0 {
		return err
	}
	j := weaver.NewJob(jobName)
	for n := range nodes {
		needs := needsOf(n)
		j.Add(nodeName(n), nodeType.With(order{N: n, Kind: "node", Needs: needs}), weaver.Needs(j.Nodes(needs...)...))
	}
	h, err := p.client.Submit(ctx, j)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.acks, "%d %s\n", jobAck, h.ID())
	return err
}

func nodeName(n int) string { return fmt.Sprint("node-", n) }

// needsOf returns up to three of the twenty nodes before the n-th.
func needsOf(n int) []string {
	rng := rand.New(rand.NewPCG(uint64(n), 500))
	var needs []string
	seen := make(map[int]bool)
	for range min(3, n) {
		m := n - 1 - rng.IntN(min(20, n))
		if !seen[m] {
			seen[m] = true
			needs = append(needs, nodeName(m))
		}
	}
	return needs
}
