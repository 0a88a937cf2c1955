package web_test

import (
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/systemtest/firefox"
)

// examineInFirefox loads pages in Firefox, and reports those that show a problem or nothing, or are too wide.
func examineInFirefox(t *testing.T, root string, pages []string) {
	t.Helper()
	f := firefox.Start(t)
	for _, page := range pages {
		f.Open(root + page)
		var never string
		f.Eval(waiting(shown), &never)
		if never != "" {
			f.Errorf("Firefox: /%s: %s", page, never)
			continue
		}
		var defect string
		f.Command("WebDriver:ExecuteScript", map[string]any{"args": []any{}, "script": `
			const problem = document.querySelector(".problem, .banner");
			if (problem) return "it shows a problem: " + problem.innerText;
			if (document.querySelector("main").innerText.length < 40) return "it is empty: " + document.querySelector("main").innerText;
			const wide = document.documentElement.scrollWidth;
			return wide > innerWidth ? "it is " + wide + " px wide" : "";`}, &defect)
		if defect != "" && !strings.Contains(page, "stat:failed") {
			f.Errorf("Firefox: /%s: %s", page, defect)
		}
	}
}
