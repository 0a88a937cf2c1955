package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/task"
)

// The buttons of schedules, limits, jobs, orders and types do what they say, and tell it.
func TestVerbs(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	b := openTab(t)
	at := func(page string) {
		t.Helper()
		b.visit(page)
		b.ready()
	}
	url := w.serve(w.dashboard(dashboard.Config{}))

	w.enqueue(work{Do: "ok"}) // its worker has announced the types
	_, err := w.client.PutSchedule(ctx, weaver.NewSchedule("hourly", report.With(work{Do: "ok"}), weaver.Cron("0 * * * *", "UTC")))
	w.must(err)
	at(url + "schedules/hourly")
	b.verb("Pause", "Pause", "The schedule is paused.")
	if s, err := w.client.Schedule(ctx, "hourly"); err != nil || s.Paused == nil {
		t.Errorf("the schedule is not paused: %v", err)
	}
	b.verb("Resume", "Resume", "The schedule goes on.")
	b.verb("Run now", "Run now", "The run is enqueued.")
	b.click("main button", "Backfill")
	b.click("dialog button", "Count the times")
	b.until(`document.querySelector("dialog").innerText.includes("The span has 24 times")`)
	b.confirm("Backfill", "24 runs enqueued for 24 times.")
	fires, err := w.client.ScheduleFires(ctx, "hourly", time.Time{}, 100)
	w.must(err)
	if len(fires) != 25 {
		t.Errorf("the schedule fired %d times, want 25", len(fires))
	}
	b.verb("Delete", "Delete", "The schedule is deleted.")
	b.until(`document.querySelector("main").innerText.includes("There is no schedule.")`)

	w.must(w.client.SetLimit(ctx, "queue:default", weaver.Limit{Running: 50}))
	at(url + "limits")
	b.click("[aria-label='Delete queue:default']", "")
	b.confirm("Delete", "The limit queue:default is deleted.")
	b.until(`document.querySelector("main").innerText.includes("No limit is set.")`)

	job := weaver.NewJob("later")
	job.Add("one", report.With(work{Do: "ok"}, weaver.Delay(time.Hour)))
	h, err := w.client.Submit(ctx, job)
	w.must(err)
	at(url + "jobs/" + h.ID().String())
	b.verb("Cancel", "Cancel the job", "1 task cancelled.")
	b.verb("Retry", "Retry", "1 task retried.")

	w.send("order-refused", "order-lost")
	w.accept("order-new")
	at(url + "orders")
	b.verb("Hold all", "Hold all", "2 orders changed.")
	at(url + "orders/order-new")
	b.verb("Release", "Release", "Release: done.")
	b.verb("Withdraw", "Withdraw", "Withdraw: done.")
	at(url + "orders/order-lost")
	b.click("main button", "Settle by hand")
	b.write("Its result", `{"status": "ok", "executed_qty": "0.4", "fills": [{"px": "100", "qty": "0.5", "ts": "2026-01-02T03:04:06Z"}]}`)
	b.allow("422")
	b.click("dialog button[type=submit]", "Settle")
	b.until(`document.querySelector("dialog[open] .problem")?.innerText.includes("the fills add up to 0.5")`)
	b.write("Its result", `{"status": "ok", "executed_qty": "0.5", "fills": [{"px": "100", "qty": "0.5", "ts": "2026-01-02T03:04:06Z"}]}`)
	b.confirm("Settle", "The order is settled.")
	at(url + "orders/order-refused")
	b.click("main button", "Resubmit")
	b.write("New key", "order-again")
	b.confirm("Resubmit", "The new order is accepted.")
	b.until(`location.pathname.endsWith("/orders/order-again")`)
	for key, want := range map[string]order.State{"order-new": order.Aborted, "order-lost": order.Succeeded, "order-refused": order.Aborted, "order-again": order.Pending} {
		if o, err := w.orders().Get(ctx, key); err != nil || o.Row.State != want {
			t.Errorf("%s is %s, want %s (%v)", key, o.Row.State, want, err)
		}
	}

	at(url + "types/acme.mail.send.v1")
	b.click("main button", "Submit a task")
	b.write("As JSON", `{"do": "ok", "text": "by hand"}`)
	b.confirm("Submit", "The task is enqueued.")
	b.click(".toast a", "Show")
	b.until(`document.querySelector("main .task-sub")?.innerText.includes("succeeded")`)
}

// A task that has changed since its page was read is not changed unseen: the dialog names its new state.
func TestVerbs_Changed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(work{Do: "wait"}, weaver.Delay(time.Hour))
	url := w.serve(w.dashboard(dashboard.Config{Links: []dashboard.Link{
		{Name: "traces", URL: "https://traces.example/search?task={id}&type={type}"}, {Name: "logs", URL: "https://logs.example/{queue}/{id}"},
	}}))
	b := openTab(t)
	b.allow("412")
	b.visit(url + "tasks/" + id.String())
	b.ready()
	for name, want := range map[string]string{
		"traces": "https://traces.example/search?task=" + id.String() + "&type=acme.mail.send.v1", "logs": "https://logs.example/default/" + id.String(),
	} {
		if got := eval[string](b, fmt.Sprintf(`[...document.querySelectorAll("main aside a")].find((a) => a.textContent === %q)?.href ?? ""`, name)); got != want {
			t.Errorf("the link %s is %q, want %q", name, got, want)
		}
	}
	b.click("main button", "Cancel")
	b.until(`document.querySelector("dialog[open]")`)
	w.must(w.client.Reschedule(t.Context(), id, time.Now().Add(2*time.Hour)))
	b.click("dialog button[type=submit]", "Cancel the task")
	b.until(`document.querySelector("dialog[open] .problem")?.innerText.includes("The task has changed since it was read.")`)
	info, err := w.client.Get(t.Context(), id)
	w.must(err)
	if info.State != task.Pending {
		t.Errorf("the task is %s", info.State)
	}
	b.confirm("Cancel the task", "The task was cancelled.")
}

// verb presses a button of the page and confirms it.
func (b *tab) verb(button, confirm, says string) {
	b.Helper()
	b.click("main button:not(:disabled)", button)
	b.confirm(confirm, says)
}

// confirm submits the open dialog, and waits until it is closed and a message has the text.
func (b *tab) confirm(button, says string) {
	b.Helper()
	b.click("dialog[open] button[type=submit]:not(:disabled)", button)
	b.until(fmt.Sprintf(`!document.querySelector("dialog[open]") && [...document.querySelectorAll(".toast")].some((e) => e.textContent.includes(%q))`, says))
}

// write writes into the field of the open dialog that has a label.
func (b *tab) write(label, text string) {
	b.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("dialog[open] label")].find((e) => e.textContent.includes(%q))`, label)
	b.until(find)
	eval[bool](b, find+`.control.focus() ?? true`)
	b.fill(text)
}
