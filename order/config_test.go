package order_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/order"
)

// TestConfigFromEnv reads each variable, and names each wrong one.
func TestConfigFromEnv(t *testing.T) {
	read := func(env map[string]string) (order.Config, error) {
		return order.ConfigFromEnv(func(name string) string { return env[name] })
	}
	seconds := func(list ...int) (d []time.Duration) {
		for _, s := range list {
			d = append(d, time.Duration(s)*time.Second)
		}
		return d
	}
	defaults := order.Config{
		Concurrency: 4, Batch: 32, PollInterval: 500 * time.Millisecond, Lease: 120 * time.Second, MaxAttempts: 6,
		Backoff: seconds(5, 10, 20, 40, 80, 160), RatePerMin: 60,
	}
	if got, err := read(nil); err != nil || !reflect.DeepEqual(got, defaults) {
		t.Errorf("without variables: %+v, %v", got, err)
	}
	for _, tc := range []struct {
		name, value string
		set         func(*order.Config)
		wrong       []string
	}{
		{"OUTBOX_ENABLED", "true", func(c *order.Config) { c.Enabled = true }, []string{"yes", "2"}},
		{"OUTBOX_CONCURRENCY", "64", func(c *order.Config) { c.Concurrency = 64 }, []string{"0", "-1", "four", "1e3", "99999999999999999999"}},
		{"OUTBOX_BATCH", " 8 ", func(c *order.Config) { c.Batch = 8 }, []string{"0", "1001"}},
		{"OUTBOX_POLL_INTERVAL_SEC", "0.25", func(c *order.Config) { c.PollInterval = 250 * time.Millisecond }, []string{"0", "NaN", "Inf", "500ms"}},
		{"OUTBOX_LOCK_LEASE_SEC", "30", func(c *order.Config) { c.Lease = 30 * time.Second }, []string{"1", "-30", "1e99"}},
		{"OUTBOX_MAX_ATTEMPTS", "2", func(c *order.Config) { c.MaxAttempts = 2 }, []string{"0", "2.5"}},
		{"OUTBOX_BACKOFF_SEC", "[1, 2.5]", func(c *order.Config) { c.Backoff = []time.Duration{time.Second, 2500 * time.Millisecond} }, []string{"[]", "5,10", "[-1]", `["5"]`, "[1e300]", "null", "[1] [2]"}},
		{"BROKER_TIMEOUT_MS", "2500", func(c *order.Config) { c.Timeout = 2500 * time.Millisecond }, []string{"0", "2.5s"}},
		{"BROKER_ADAPTER", "paper", func(c *order.Config) { c.Adapter = "paper" }, []string{"fix", "PAPER", "http"}},
		{"BROKER_URL", "https://b.example/orders", func(c *order.Config) { c.URL = "https://b.example/orders" }, nil},
		{"BROKER_TOKEN", "t", func(c *order.Config) { c.Token = "t" }, nil},
		{"BROKER_TOKEN_FILE", "/run/t", func(c *order.Config) { c.TokenFile = "/run/t" }, nil},
		{"ORDER_MAX_AGE", "90s", func(c *order.Config) { c.MaxAge = 90 * time.Second }, []string{"0s", "-1h", "90"}},
		{"ORDER_RATE_PER_MIN", "0", func(c *order.Config) { c.RatePerMin = 0 }, []string{"-1", "many"}},
		{"ORDER_INSTRUMENTS", `{"X": {"min_qty": "1", "qty_step": "1"}}`, func(c *order.Config) {
			c.Instruments = map[string]order.Instrument{"X": {MinQty: "1", QtyStep: "1"}}
		}, []string{"null", "[]", "X"}},
	} {
		want := defaults
		tc.set(&want)
		if got, err := read(map[string]string{tc.name: tc.value}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s=%s: %+v, %v", tc.name, tc.value, got, err)
		}
		for _, value := range tc.wrong {
			if _, err := read(map[string]string{tc.name: value}); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(tc.name, "ADAPTER")) {
				t.Errorf("%s=%s: %v", tc.name, value, err)
			}
		}
	}
	_, err := read(map[string]string{"OUTBOX_BATCH": "x", "BROKER_TIMEOUT_MS": "x", "BROKER_TOKEN": "SEKRET", "BROKER_TOKEN_FILE": "/x"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "SEKRET") {
		t.Errorf("three mistakes: %v", err)
	}
}
