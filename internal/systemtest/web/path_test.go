package web_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/task"
)

// press sends keys to the element with the focus. "\r" is Enter, "\t" Tab, "\u001b" Escape.
func (b *tab) press(keys string) {
	b.Helper()
	for _, k := range keys {
		if err := chromedp.Do(b.ctx, chromedp.KeyEvent(string(k))); err != nil {
			b.Fatal(err)
		}
	}
}

// tabTo presses Tab until the element with the focus has a text or a label.
func (b *tab) tabTo(text string) {
	b.Helper()
	var seen []string
	for range 150 {
		b.press("\t")
		at := eval[string](b, `(() => {
			const e = document.activeElement;
			if (e === document.body) return "";
			const label = e.labels?.[0]?.textContent ?? "";
			return [e.getAttribute("aria-label") ?? "", label, e.textContent.slice(0, 200)].join(" ").trim();
		})()`)
		if strings.Contains(at, text) {
			return
		}
		seen = append(seen, at)
	}
	b.Fatalf("Tab never reaches %q: %q", text, seen)
}

// onScreens runs a test of a person with a keyboard on a wide and on a narrow screen.
func onScreens(t *testing.T, run func(*tab, *world, string)) {
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := openTab(t)
			b.screen(width, false)
			run(b, w, w.serve(w.dashboard(dashboard.Config{})))
		})
	}
}

// From a failure on the overview to why, and to a rerun with another input, by keyboard alone.
func TestPath_FailureToRerun(t *testing.T) {
	t.Parallel()
	onScreens(t, failureToRerun)
}

func failureToRerun(b *tab, w *world, url string) {
	id := w.enqueue(work{Do: "fail", Text: "first"})
	b.visit(url)
	b.ready()
	b.until(`document.querySelector(".troubles")?.innerText.includes("failed attempt")`)
	b.tabTo("failed attempt")
	b.press("\r")
	b.until(`document.querySelector("tr[data-id]")`)
	b.press("j\r")
	b.until(`location.pathname.endsWith("/tasks/` + id.String() + `")`)
	b.until(`document.querySelector("main").innerText.includes("the server said 550: first")`)
	b.press("e")
	b.until(`document.querySelector("dialog[open]")?.innerText.includes("All its steps run again")`)
	b.tabTo("With another input")
	b.press(" ")
	b.tabTo("As JSON")
	b.fill(`{"do": "ok", "text": "second"}`)
	b.until(`document.querySelector("dialog .diff")?.innerText.includes("second")`)
	b.tabTo("Rerun with this input")
	b.press("\r")
	b.until(`document.querySelector(".toast a")`)
	b.tabTo("Show")
	b.press("\r")
	b.until(`document.querySelector("main h1 ~ *, main .task-sub")?.innerText.includes("succeeded")`)
	again := taskOf(b)
	if again == id {
		b.Fatal("the page still shows the first task")
	}
	got, err := w.tasks.Get(b.Context(), again)
	w.must(err)
	if got.RerunOf != id || !strings.Contains(string(got.Output), "sent second") {
		b.Errorf("the new task repeats %s with the output %s, want %s and \"sent second\"", got.RerunOf, got.Output, id)
	}
}

// From the inbox to an answer, first a wrong one.
func TestPath_InboxToAnswer(t *testing.T) {
	t.Parallel()
	onScreens(t, inboxToAnswer)
}

func inboxToAnswer(b *tab, w *world, url string) {
	id := w.enqueue(work{Do: "block"})
	b.visit(url)
	b.ready()
	b.press("gi")
	b.until(`document.querySelector(".inbox li")`)
	b.press("ju")
	b.until(`document.querySelector("dialog[open] textarea")`)
	b.tabTo("Answer")
	b.fill(`{"do": `)
	b.until(`document.querySelector("dialog .field-error") || document.querySelector("dialog [type=submit]").disabled`)
	b.fill(`{"do": "ok", "text": "answered"}`)
	b.tabTo("Unblock")
	b.press("\r")
	b.until(`!document.querySelector("dialog[open]") && document.querySelector(".toast")`)
	info, err := w.tasks.Get(b.Context(), id)
	w.must(err)
	if info.UnblockInput == nil {
		b.Errorf("the task has no answer: %s", info.State)
	}
}

// A queue is paused with a reason, and the explanation of its waiting task names both.
func TestPath_PauseToWhy(t *testing.T) {
	t.Parallel()
	onScreens(t, pauseToWhy)
}

func pauseToWhy(b *tab, w *world, url string) {
	id := w.enqueue(work{Do: "wait"}, weaver.Delay(time.Hour), weaver.Queue("billing"))
	b.visit(url + "queues")
	b.ready()
	b.until(`document.querySelector("main").innerText.includes("billing")`)
	b.tabTo("Pause a queue")
	b.press("\r")
	b.until(`document.querySelector("dialog[open]")`)
	b.tabTo("Queue")
	b.fill("billing")
	b.tabTo("Reason")
	b.fill("the ledger moves")
	b.tabTo("Pause")
	b.press("\r")
	b.until(`document.querySelector("main").innerText.includes("the ledger moves")`)
	b.visit(url + "tasks/" + id.String())
	b.until(`document.querySelector("main").innerText.includes("the ledger moves")`)
}

// 12,000 tasks are cancelled after a dry run; the work is stopped and continued.
func TestPath_BulkStoppedAndContinued(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	onScreens(t, bulkStoppedAndContinued)
}

func bulkStoppedAndContinued(b *tab, w *world, url string) {
	const n = 12_000
	for inputs := range slices.Chunk(make([]work, n), 1000) {
		_, err := mail.EnqueueMany(b.Context(), w.tasks, inputs, weaver.Delay(time.Hour))
		w.must(err)
	}
	b.visit(url + "tasks?q=state:pending")
	b.ready()
	b.tabTo("Select all shown")
	b.press(" ")
	b.tabTo("Select all that match")
	b.press("\r")
	b.tabTo("Cancel")
	b.press("\r")
	b.until(`document.querySelector("dialog[open]")?.innerText.includes("12,000 tasks will be cancelled.")`)
	b.tabTo("Type 12,000 to confirm")
	b.press("12000")
	b.tabTo("Cancel 12,000 tasks")
	b.press("\r")
	b.tabTo("Stop")
	b.press("\r")
	b.until(`document.querySelector("dialog[open]")?.innerText.includes("Stopped")`)
	if w.count(task.Pending) == 0 || w.count(task.Cancelled) == 0 {
		b.Errorf("after the stop %d tasks are pending and %d cancelled", w.count(task.Pending), w.count(task.Cancelled))
	}
	b.tabTo("Continue")
	b.press("\r")
	b.until(`document.querySelector("dialog[open]")?.innerText.includes("Done.")`)
	if left := w.count(task.Pending); left != 0 {
		b.Errorf("after the end %d tasks are pending", left)
	}
}

// fill replaces the text of the field with the focus.
func (b *tab) fill(text string) {
	b.Helper()
	eval[bool](b, `document.activeElement.select?.() ?? true`)
	if err := chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})); err != nil {
		b.Fatal(err)
	}
}

// taskOf returns the id of the task whose page is shown.
func taskOf(b *tab) weaver.TaskID {
	b.Helper()
	id, err := task.ParseID(path.Base(eval[string](b, "location.pathname")))
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// count returns the number of tasks in a state, at most store.MaxCount.
func (w *world) count(state task.State) int {
	w.Helper()
	return w.states()[state].N
}
