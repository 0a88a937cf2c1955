package conn

import (
	"strings"
	"time"
)

// plansLast is the default maximum age of a connection's plans. A plan depends on the row
// counts when it is made. A plan for empty tables scans them, even once they have millions of
// rows, until the server collects statistics, which takes a minute. Making all plans again
// costs about 20 ms.
const plansLast = 5 * time.Second

// replan queues new planning of all statements if the plans are too old.
func (c *Conn) replan() error {
	if !c.direct {
		return nil // a statement without a name keeps no plan
	}
	now := time.Now()
	if c.planned.IsZero() {
		c.planned = now
	}
	if now.Sub(c.planned) < c.PlansLast {
		return nil
	}
	c.planned = now
	_, err := c.control("DISCARD PLANS")
	return err
}

// planner are settings that force generic plans. A plan for the current parameters reads the
// whole namespace if it has many IDs and the server has no statistics, for example after a
// restore.
var planner = []struct{ name, value string }{
	{"plan_cache_mode", "force_generic_plan"},
}

// setPlanner returns the SELECT expressions that set planner in the session.
func setPlanner() string {
	var parts []string
	for _, p := range planner {
		parts = append(parts, "set_config('"+p.name+"', '"+p.value+"', false)")
	}
	return strings.Join(parts, ", ")
}
