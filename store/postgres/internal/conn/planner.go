package conn

import (
	"strings"
	"time"
)

// plansLast is how long a connection keeps the plans of its statements. They go by the
// rows that there are when they are made: what was planned while the tables were empty
// scans them, also once they have millions of rows, until the server collects
// statistics, which takes a minute. All plans together cost about 20 ms.
const plansLast = 5 * time.Second

// replan queues that all statements are planned anew, if it is time.
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

// planner is how statements are planned: for any parameters. A plan for those at hand
// reads the whole namespace when there are many IDs among them and the server has no
// statistics, as after a restore.
var planner = []struct{ name, value string }{
	{"plan_cache_mode", "force_generic_plan"},
}

// setPlanner is the part of a SELECT that has the session plan so.
func setPlanner() string {
	var parts []string
	for _, p := range planner {
		parts = append(parts, "set_config('"+p.name+"', '"+p.value+"', false)")
	}
	return strings.Join(parts, ", ")
}
