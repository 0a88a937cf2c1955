package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/store/memstore"
)

// A service serves the dashboard below a path of its own.
func Example() {
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	dash, err := dashboard.New(client, dashboard.Config{
		Title: "production",
		Links: []dashboard.Link{{Name: "logs", URL: "https://logs.example.com/?q={id}"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dash.Stop()
	mux := http.NewServeMux()
	mux.Handle("/weaver/", http.StripPrefix("/weaver", dash))

	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/weaver/tasks", http.NoBody))
	fmt.Println(page.Code, page.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
