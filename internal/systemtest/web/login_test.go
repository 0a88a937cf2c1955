package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/httpapi"
)

// Without a cookie there is a page for a token; a token in the fragment signs in and leaves the address.
func TestLogin(t *testing.T) {
	t.Parallel()
	token, line := httpapi.NewToken("ann", httpapi.Full)
	tokens, err := httpapi.ReadTokens(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	w := worldWith(t, func(cfg *httpapi.Config) { cfg.Authorize, cfg.Login = tokens.Authorize, tokens })
	root := w.serve(w.dashboard(dashboard.Config{}))
	b := openTab(t)
	b.allow("401")
	b.visit(root + "tasks")
	b.until(`document.querySelector("input[name=token]")`)
	eval[bool](b, axe+"; true")
	b.signIn("wrong")
	b.until(`document.querySelector(".problem")?.innerText.includes("no such token")`)
	for _, defect := range defectsOf(b, "stat:failed") {
		t.Error(defect)
	}
	b.signIn(token)
	b.ready()
	if !strings.HasSuffix(eval[string](b, "location.href"), "/tasks") {
		t.Error("another page is open after the login")
	}
	b.reload()
	b.ready() // the cookie

	other := openTab(t)
	other.allow("401")
	other.visit(root + "tasks?q=state:failed#token=" + token)
	other.ready()
	if at := eval[string](other, "location.href"); at != root+"tasks?q=state:failed" {
		t.Errorf("the address is %s", at)
	}
	if eval[int](other, "history.length") > 2 { // about:blank is the first
		t.Error("the address with the token is in the history")
	}
	eval[bool](other, `fetch("logout", {method: "POST"}).then((r) => r.ok)`)
	other.reload()
	other.until(`document.querySelector("input[name=token]")`)
}

// signIn fills in and sends the form for a token.
func (b *tab) signIn(token string) {
	b.Helper()
	b.until(`document.querySelector("input[name=token]")`)
	eval[bool](b, fmt.Sprintf(`(() => {
		const input = document.querySelector("input[name=token]");
		input.value = %q;
		input.dispatchEvent(new Event("input", {bubbles: true}));
		return true;
	})()`, token))
	b.until(`!document.querySelector("button[type=submit]").disabled`)
	b.click("button[type=submit]", "Sign in")
}
