package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/goweaver/weaver"
)

// Health reports that the process responds (healthz) or is ready (readyz).
type Health struct {
	Status string        `json:"status"`
	Checks []HealthCheck `json:"checks,omitempty"` // of readyz: the store, and Config.ReadyChecks
	// WorkersInTrouble is the number of workers that cannot run tasks of a type at the moment
	// (readyz): GET /v1/workers gives the reason.
	WorkersInTrouble int `json:"workers_in_trouble,omitempty"`
}

func (c *call) healthz() error { return c.write(http.StatusOK, Health{Status: "ok"}) }

// ReadyCheck is a condition of GET /readyz, in addition to the store.
type ReadyCheck struct {
	Name string

	// Check returns nil if the condition holds. It has 5 seconds. The text of its error is shown
	// without credentials: it names no tasks, hosts or users.
	Check func(ctx context.Context) error

	// Optional reports that the process works without the condition: a failure is "degraded", and the
	// server stays ready.
	Optional bool
}

// Results of checks.
const (
	checkOK     = "ok"
	checkFailed = "failed"

	checkDegraded = "degraded"
)

// readyz reports whether the store can be used and the checks of the process succeed. Other
// workers are not part of it.
func (c *call) readyz() error {
	if c.api.ctx.Err() != nil {
		return stopping.of("The server is stopping.")
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), 5*time.Second)
	defer cancel()
	var failure *Problem
	checks := []HealthCheck{{Name: "store", Status: checkOK}}
	if err := c.api.client.Store().Ready(ctx); err != nil {
		failure = c.problem(err, "the store is not ready")
		checks[0] = HealthCheck{Name: "store", Status: checkFailed, Detail: failure.Title}
	}
	for _, check := range c.api.cfg.ReadyChecks {
		line := HealthCheck{Name: check.Name, Status: checkOK}
		if err := check.Check(ctx); err != nil {
			line.Status, line.Detail = checkFailed, err.Error()
			if check.Optional {
				line.Status = checkDegraded
			} else if failure == nil {
				failure = notReady.of("%s: %s", check.Name, err)
			}
		}
		checks = append(checks, line)
	}
	if failure != nil {
		failure.Checks = checks
		return failure
	}
	ready := Health{Status: "ready", Checks: checks}
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
