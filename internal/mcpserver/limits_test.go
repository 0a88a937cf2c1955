package mcpserver_test

import (
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	c.AllowWrites, c.Actor = true, "ann"
	cs := connect(t, c)
	for _, step := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"list_limits", nil, `"items":[]`},
		{"set_limit", map[string]any{"name": "queue:billing", "starts": 10, "per": "1m", "running": 2, "reason": "month end"}, `"by":"ann","reason":"month end"`},
		{"list_limits", map[string]any{"limit": 1}, `"next":"queue:billing"`},
		{"delete_limit", map[string]any{"name": "queue:billing", "reason": "over"}, `"deleted":"queue:billing"`},
	} {
		if answer, isError := call(t, cs, step.tool, step.args); isError || !strings.Contains(answer, step.want) {
			t.Errorf("%s %v: %s, want %s", step.tool, step.args, answer, step.want)
		}
	}
	for want, args := range map[string]map[string]any{
		"reason is empty": {"name": "queue:q", "running": 1, "reason": ""},
		"want queue:NAME": {"name": "q", "running": 1, "reason": "x"},
		"per is":          {"name": "queue:q", "starts": 1, "per": "often", "reason": "x"},
	} {
		if answer, isError := call(t, cs, "set_limit", args); !isError || !strings.Contains(answer, want) {
			t.Errorf("set_limit %v: %s, want an error with %q", args, answer, want)
		}
	}
	c.AllowWrites = false
	if answer, isError := call(t, connect(t, c), "set_limit", map[string]any{"name": "queue:q", "running": 1, "reason": "x"}); !isError || !strings.Contains(answer, "--allow-writes") {
		t.Errorf("without writes: %s", answer)
	}
}
