package main

import (
	"strings"
	"testing"
)

// Small tenants that come last are done long before the big one, and the partner's rate holds.
func TestPartner(t *testing.T) {
	t.Parallel()
	all, err := run(t.Context(), t.TempDir(), []tenant{{"big", 70}, {"ada", 3}, {"bob", 3}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := show(&out, all); err != nil {
		t.Errorf("%v:\n%s", err, &out)
	}
	big := all[0].at
	for _, small := range all[1:] {
		if last := small.at[len(small.at)-1]; !last.Before(big[len(big)/2]) {
			t.Errorf("%s was held up by the big tenant:\n%s", small.name, &out)
		}
	}
	retries := 0
	for _, s := range all {
		retries += len(s.at) - s.tasks
	}
	if retries == 0 {
		t.Error("the partner never answered 429")
	}
}
