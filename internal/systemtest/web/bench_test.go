package web_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/goweaver/weaver/dashboard"
)

// mainThread returns the seconds for which the main thread of a page has worked.
func (b *tab) mainThread() float64 {
	b.Helper()
	sum := 0.0
	if err := chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, performance.Enable, performance.EnableParams{}); err != nil {
			return err
		}
		got, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, m := range got.Metrics {
			if m.Name == "TaskDuration" {
				sum += m.Value
			}
		}
		return nil
	})); err != nil {
		b.Fatal(err)
	}
	return sum
}

// BenchmarkPages measures a load of each page over a store of 1,000 tasks (ns/op), with the time that the main thread
// of the page works for it.
func BenchmarkPages(b *testing.B) {
	w := newWorld(b)
	w.fill()
	for i := range 1000 {
		w.enqueue(work{Do: "ok", Text: fmt.Sprint(i)})
	}
	url := w.serve(w.dashboard(dashboard.Config{}))
	p := openTab(b)
	for _, page := range []string{"", "tasks", "tasks?limit=200", "tasks/" + w.task["fail"].String(), "jobs", "queues", "workers", "types", "events", "audit"} {
		b.Run("/"+page, func(b *testing.B) {
			worked := 0.0
			for b.Loop() {
				p.visit(url + page)
				p.ready()
				worked += p.mainThread()
			}
			b.ReportMetric(worked/float64(b.N), "main-s/op")
		})
	}
}

// BenchmarkStorm measures how long the main thread of the list of 200 tasks works while a task is enqueued, starts and
// ends (main-ms/op).
func BenchmarkStorm(b *testing.B) {
	w := newWorld(b)
	for range 200 {
		w.enqueue(work{Do: "ok"})
	}
	p := openTab(b)
	p.visit(w.serve(w.dashboard(dashboard.Config{})) + "tasks?limit=200")
	p.ready()
	before := p.mainThread()
	for b.Loop() {
		w.enqueue(work{Do: "ok"})
	}
	b.ReportMetric(1000*(p.mainThread()-before)/float64(b.N), "main-ms/op")
}
