package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/goweaver/weaver/httpapi/client"
)

// The names of package client by which programs that import this one know them.
type (
	// Client enqueues, reads and operates the tasks of a server; see client.Client.
	Client = client.Client
	// ClientOption is an option of NewClient.
	ClientOption = client.Option
)

// NewClient is client.New.
func NewClient(baseURL string, opts ...ClientOption) (*Client, error) {
	return client.New(baseURL, opts...)
}

// Token is client.Token.
func Token(token string) ClientOption { return client.Token(token) }

// TokenFunc is client.TokenFunc.
func TokenFunc(token func(context.Context) (string, error)) ClientOption {
	return client.TokenFunc(token)
}

// BasicAuth is client.BasicAuth.
func BasicAuth(name, password string) ClientOption { return client.BasicAuth(name, password) }

// HTTPClient is client.HTTPClient.
func HTTPClient(h *http.Client) ClientOption { return client.HTTPClient(h) }

// Tries is client.Tries.
func Tries(n int) ClientOption { return client.Tries(n) }

// MaxAnswer is client.MaxAnswer.
func MaxAnswer(bytes int64) ClientOption { return client.MaxAnswer(bytes) }

// Logger is client.Logger.
func Logger(log *slog.Logger) ClientOption { return client.Logger(log) }
