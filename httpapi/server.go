package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/goweaver/weaver"
)

// Health reports that the process responds.
type Health struct {
	Status string `json:"status"`
	// WorkersInTrouble is the number of workers that cannot run tasks of a type at the moment
	// (readyz): GET /v1/workers gives the reason.
	WorkersInTrouble int `json:"workers_in_trouble,omitempty"`
}

func (c *call) healthz() error { return c.write(http.StatusOK, Health{Status: "ok"}) }

// readyz reports whether the store can be used. It does not depend on workers.
func (c *call) readyz() error {
	if c.api.ctx.Err() != nil {
		return stopping.of("The server is stopping.")
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), 5*time.Second)
	defer cancel()
	if err := c.api.client.Store().Ready(ctx); err != nil {
		return err
	}
	ready := Health{Status: "ready"}
	if workers, err := c.api.client.Workers(ctx); err == nil { // they are not part of this server
		for i := range workers {
			if workers[i].InTrouble() {
				ready.WorkersInTrouble++
			}
		}
	}
	return c.write(http.StatusOK, ready)
}

// Features lists the features of this server.
type Features struct {
	Namespace string          `json:"namespace"`
	Features  map[string]bool `json:"features"`
}

// openapi writes the document.
func (c *call) openapi() error {
	doc, err := c.api.spec()
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(doc)
	return nil
}

func (c *call) resumeQueue() error {
	return c.operateNamed(func(ctx context.Context, name string, opts []weaver.OperateOption) error {
		return c.api.client.ResumeQueue(ctx, name, opts...)
	})
}
