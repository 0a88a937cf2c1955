package cli

import (
	"log/slog"
	"net/http"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/mcpserver"
)

// mcpHandler serves the tools of the verb mcp over HTTP. Each principal gets the tools that its access allows.
func (s *session) mcpHandler(api *httpapi.API, client *weaver.Client, addresses *addressFlags, logger *slog.Logger) http.Handler {
	return api.Guard("mcp", httpapi.Read, func(w http.ResponseWriter, r *http.Request, who httpapi.Principal) {
		mcpserver.Handler(func(*http.Request) (mcpserver.Config, error) {
			return mcpserver.Config{
				Version:      s.app.Version,
				Client:       client,
				Find:         s.findFor(client),
				Why:          s.whyText,
				Logs:         s.logsText,
				Types:        s.typeNames,
				Draft:        s.mcpDraft,
				Orders:       s.mcpOrders(client, addresses),
				AllowWrites:  who.Access.Has(httpapi.Operate | httpapi.Submit),
				ShowPayloads: who.Access.Has(httpapi.Payloads),
				ToShow:       "send a token that has the access payloads",
				Actor:        who.Name,
				Logger:       logger,
			}, nil
		}).ServeHTTP(w, r)
	})
}
