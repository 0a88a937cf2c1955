package store

// checkpoints checks that each checkpoint belongs to a task and has a unique name (I6).
func (c *checker) checkpoints() {
	seen := map[callOf]bool{}
	for _, p := range c.Checkpoints {
		t, ok := c.byID[p.TaskID]
		switch key := (callOf{p.TaskID, p.Name}); {
		case !ok:
			c.report("I6", p.TaskID.String(), "a checkpoint %q is of task %s, which does not exist", p.Name, p.TaskID)
		case seen[key]:
			c.task("I6", t, "has two checkpoints %q", p.Name)
		default:
			seen[key] = true
		}
	}
}
