package builtin_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver/builtin"
)

func TestDurationTakesNullAsNothing(t *testing.T) {
	t.Parallel()
	in := builtin.RunInput{Timeout: builtin.Duration(time.Minute)}
	if err := json.Unmarshal([]byte(`{"shell": "true", "timeout": null}`), &in); err != nil || time.Duration(in.Timeout) != time.Minute {
		t.Errorf("null made %v of a minute, %v", time.Duration(in.Timeout), err)
	}
	for _, raw := range []string{`60`, `"null"`, `""`, `true`, `[]`} {
		if err := json.Unmarshal([]byte(raw), new(builtin.Duration)); err == nil {
			t.Errorf("%s is taken as a duration", raw)
		}
	}
}
