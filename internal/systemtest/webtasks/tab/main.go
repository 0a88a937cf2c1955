// Command tab runs the task types of webtasks in a tab, for the tests of the dashboard.
package main

import (
	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/browser"
	"github.com/goweaver/weaver/internal/systemtest/webtasks"
)

func main() {
	browser.Main(browser.Config{Engine: weaver.Config{Handlers: []weaver.Handler{
		webtasks.Mail.Handler(webtasks.Handle), webtasks.Report.Handler(webtasks.Handle),
	}}})
}
