package httpapi

import (
	"net/http"
	"time"

	"github.com/goweaver/weaver"
)

// limitRoutes are the routes of limits.
func (a *API) limitRoutes() []route {
	const pattern = "/v1/limits/{name}"
	return []route{
		{method: get, pattern: "/v1/limits", id: "listLimits", summary: "List limits by name, with their use.", access: Read, params: []param{query("limit", "integer", "Maximum rows of the page: 1 to 1,000; default 100."), query("after", "string", "The `next` of the previous page, or any name: only limits after it.")}, answers: ok[Page[weaver.LimitInfo]]("A page."), handle: (*call).listLimits},
		{method: get, pattern: pattern, id: "getLimit", summary: "Read a limit with its use.", access: Read, answers: ok[weaver.LimitInfo]("The limit."), handle: (*call).getLimit},
		{method: put, pattern: pattern, id: "setLimit", summary: "Set a limit: queue:NAME, type:NAME, label:KEY=VALUE or rate:KEY. It holds at once, in all processes.", access: Read | Operate, body: typeOf[LimitDraft](), answers: ok[weaver.LimitInfo]("The limit after the change."), handle: (*call).setLimit},
		{method: del, pattern: pattern, id: "deleteLimit", summary: "Delete a limit.", access: Read | Operate, params: []param{query("reason", "string", "The reason, for the audit log.")}, answers: []answer{{status: 204, summary: "It was deleted."}}, handle: (*call).deleteLimit},
	}
}

func (c *call) listLimits() error {
	return listByName(c, c.api.client.Limits, func(l *weaver.LimitInfo) string { return l.Name })
}

func (c *call) getLimit() error {
	ctx, cancel := c.context()
	defer cancel()
	got, err := c.api.client.Limit(ctx, c.path("name"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, got)
}

func (c *call) setLimit() error {
	var body LimitDraft
	if err := c.decode(&body); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	l := weaver.Limit{Starts: body.Starts, Per: time.Duration(body.Per), Burst: body.Burst, Running: body.Running, Pending: body.Pending, Weight: body.Weight}
	if err := c.api.client.SetLimit(ctx, c.path("name"), l, c.operator(body.Reason)...); err != nil {
		return err
	}
	return c.getLimit()
}

func (c *call) deleteLimit() error {
	ctx, cancel := c.context()
	defer cancel()
	if err := c.api.client.DeleteLimit(ctx, c.path("name"), c.operator(c.get("reason"))...); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
