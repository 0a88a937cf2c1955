package web_test

import (
	"testing"

	"github.com/goweaver/weaver/dashboard"
)

// A page says that its object is missing, that it was deleted, that the server has newer pages, that the clocks
// differ, and that the login has ended.
func TestWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := newWire(w.dashboard(dashboard.Config{}))
	url := w.serve(n)
	b := openTab(t)
	b.allow("404") // of missing objects
	shows := func(text string) {
		t.Helper()
		b.until("document.body.innerText.includes(`" + text + "`)")
	}
	for _, id := range []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "not-an-id"} {
		b.allow("400")
		b.visit(url + "tasks/" + id)
		shows("There is no such task")
	}
	for page, says := range map[string]string{
		"jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV": "It does not exist.", "schedules/none": "It does not exist.", "orders/none": "It does not exist.",
		"types/none": "No worker has announced this type.", "queues/none": "Nothing waits or runs in this queue.",
	} {
		b.visit(url + page)
		shows(says)
	}
	id := w.enqueue(work{Do: "ok"})
	b.visit(url + "tasks/" + id.String())
	b.ready()
	w.must(w.client.Delete(t.Context(), id))
	shows("The task was deleted")

	b.visit(url)
	b.ready()
	n.set("upgraded")
	shows("The server has a newer version of this page.")
	n.set("")
	b.click(".banner button", "Reload")
	b.ready()
	b.until(`!document.querySelector(".banner")`)

	n.set("clock")
	shows("The clock of this machine is 1 h behind the server's.")
	n.set("")
	b.until(`!document.querySelector(".banner")`)

	b.allow("401")
	n.set("401")
	shows("Sign in")
	n.set("")
	b.reload()
	b.ready()
}
