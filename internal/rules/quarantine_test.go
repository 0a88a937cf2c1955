package rules_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

func TestQuarantineLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ slots, losses, want int }{
		{1, 0, 1}, {8, 0, 1}, {16, 0, 2}, {64, 0, 8}, {64, 1, 4}, {64, 3, 1}, {64, 4, 1}, {64, 1000, 1},
	} {
		if got := rules.QuarantineLimit(tc.slots, tc.losses); got != tc.want {
			t.Errorf("QuarantineLimit(%d, %d) = %d, want %d", tc.slots, tc.losses, got, tc.want)
		}
	}
	for crashes, want := range []bool{false, false, true, true} {
		if got := rules.Quarantined(crashes); got != want {
			t.Errorf("Quarantined(%d) = %v", crashes, got)
		}
	}
	for _, tc := range []struct {
		slots, losses int
		want          bool
	}{
		{0, 0, true}, {7, 0, true}, {8, 0, false}, {8, 1, true}, {15, 1, true}, {16, 1, false}, {16, 2, true}, {80, 3, false}, {80, 4, true}, {80, 99, true},
	} {
		if got := rules.Alone(tc.slots, tc.losses); got != tc.want {
			t.Errorf("Alone(%d, %d) = %v", tc.slots, tc.losses, got)
		}
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		req             store.ClaimRequest
		crashes, losses int
		want            bool
	}{
		{"a healthy task beside a quarantined one", store.ClaimRequest{Slots: 16, Quarantined: 1, QuarantineLimit: 2}, 1, 0, true},
		{"a healthy task beside one that runs alone", store.ClaimRequest{Slots: 8, Quarantined: 1, QuarantineLimit: 1, Alone: true}, 1, 0, false},
		{"one that has to run alone, and nothing runs", store.ClaimRequest{Slots: 8}, 2, 1, true},
		{"one that has to run alone beside a healthy one", store.ClaimRequest{Slots: 8, Running: 1}, 2, 1, false},
		{"the first beside a healthy one", store.ClaimRequest{Slots: 8, Running: 1}, 2, 0, true},
		{"one that had room for others before a loss, beside a healthy one", store.ClaimRequest{Slots: 16, Running: 1}, 2, 2, false},
		{"the first beside healthy ones", store.ClaimRequest{Slots: 16, Running: 9}, 2, 0, true},
		{"within its own limit", store.ClaimRequest{Slots: 16, Quarantined: 1, QuarantineLimit: 2}, 2, 0, true},
		{"over its own limit", store.ClaimRequest{Slots: 16, Quarantined: 1, QuarantineLimit: 2}, 2, 1, false},
		{"over the limit of one that runs", store.ClaimRequest{Slots: 64, Quarantined: 1, QuarantineLimit: 1}, 2, 0, false},
		{"below the limit of those that run", store.ClaimRequest{Slots: 64, Quarantined: 3, QuarantineLimit: 4}, 2, 0, true},
	} {
		q := rules.NewQuarantine(&tc.req)
		if got := q.HasRoom(tc.crashes, tc.losses); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}

	q := rules.NewQuarantine(&store.ClaimRequest{Slots: 32})
	if limit, _ := q.Add(1, 0); limit != 0 || !q.HasRoom(2, 0) {
		t.Errorf("a healthy task takes a place in quarantine: limit %d", limit)
	}
	if limit, _ := q.Add(2, 0); limit != 4 || !q.HasRoom(2, 0) {
		t.Errorf("after one of four: limit %d", limit)
	}
	if limit, _ := q.Add(2, 1); limit != 2 || q.HasRoom(2, 0) {
		t.Errorf("the smaller limit must hold for all: limit %d", limit)
	}

	q = rules.NewQuarantine(&store.ClaimRequest{Slots: 64})
	for i, losses := range []int{1, 0, 0, 0} {
		if !q.HasRoom(2, losses) {
			t.Errorf("no room for the task after %d of four", i)
		}
		q.Add(2, losses)
	}
	if q.HasRoom(2, 0) {
		t.Error("a larger limit replaced the smallest one of those that run")
	}

	q = rules.NewQuarantine(&store.ClaimRequest{Slots: 7})
	q.Add(0, 0)
	if q.PassedOver() || q.HasRoom(2, 0) || !q.PassedOver() || q.Closed() {
		t.Error("a task that has to run alone is not passed over beside one that this claim took")
	}
	q = rules.NewQuarantine(&store.ClaimRequest{Slots: 7})
	if limit, alone := q.Add(2, 0); limit != 1 || !alone || !q.Closed() || q.HasRoom(0, 0) || q.PassedOver() {
		t.Errorf("a task may run beside one that runs alone: limit %d", limit)
	}
}
