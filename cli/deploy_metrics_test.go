package cli_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store/memstore"
)

// exported returns the metrics of /metrics with their labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	st := memstore.New()
	client, err := weaver.NewClient(st, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	desc := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)
	for _, c := range cli.Collectors(client, st) {
		ch := make(chan *prometheus.Desc, 1000)
		c.Describe(ch)
		close(ch)
		for d := range ch {
			m := desc.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("cannot read %s", d)
			}
			labels := []string{"job", "instance"}
			if m[2] != "" {
				labels = append(labels, strings.Split(m[2], ",")...)
			}
			all[m[1]] = labels
		}
	}
	return all
}

// labelValues are the values of labels that expressions may name.
var labelValues = map[string][]string{
	"outcome": {"success", "failure", "blocked", "suspended", "cancelled", "decode_failed", "decompose", "add_dependency", "released", "lease_lost", "undone", "undo_failed"},
	"state":   {"pending", "ready", "running", "succeeded", "failed", "cancelled", "blocked", "idle", "silent", "dead"},
	"why":     {"taken", "crash", "dropped"},
	"result":  {"taken", "failed", "refused", "began", "given_up"},
	"op":      {"join", "claim", "heartbeat", "record", "finish", "reap", "collect", "write_stats"},
}

var (
	aMetric  = regexp.MustCompile(`\b(weaver|outbox|order|idempo|idempotency|broker|do_order|go|process)_\w+`)
	aMatcher = regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)"([^"]*)"`)
	aGroup   = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// checkExpr checks the metrics, labels and values of an expression of PromQL.
func checkExpr(t *testing.T, where, expr string, metrics map[string][]string) {
	t.Helper()
	var labels []string
	for _, name := range aMetric.FindAllString(expr, -1) {
		base := name
		if metrics[base] == nil {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				base = strings.TrimSuffix(base, suffix)
			}
		}
		if metrics[base] == nil {
			t.Errorf("%s: /metrics has no %s", where, name)
			continue
		}
		labels = append(labels, metrics[base]...)
		if strings.HasSuffix(name, "_bucket") {
			labels = append(labels, "le")
		}
	}
	if labels == nil {
		t.Errorf("%s: no metric in %s", where, expr)
	}
	known := func(label string) {
		if !slices.Contains(labels, label) {
			t.Errorf("%s: the metrics have no label %s: %s", where, label, expr)
		}
	}
	for _, m := range aMatcher.FindAllStringSubmatch(expr, -1) {
		known(m[1])
		for _, v := range strings.Split(m[2], "|") {
			if want := labelValues[m[1]]; want != nil && !slices.Contains(want, v) {
				t.Errorf("%s: %s is never %q", where, m[1], v)
			}
		}
	}
	for _, m := range aGroup.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(m[1], ",") {
			known(strings.TrimSpace(label))
		}
	}
}

// Alarms use metrics that exist, are tested by promtool, and are explained.
func TestAlarms(t *testing.T) {
	t.Parallel()
	metrics := exported(t)
	tests, err := os.ReadFile("../deploy/prometheus/rules_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, _ := in(yamlOf(t, "deploy/prometheus/rules.yml")[0], "groups", 0, "rules").([]any)
	if len(rules) < 10 {
		t.Fatalf("%d rules", len(rules))
	}
	for _, rule := range rules {
		name, _ := in(rule, "alert").(string)
		expr, _ := in(rule, "expr").(string)
		checkExpr(t, name, expr, metrics)
		if !strings.Contains(string(tests), "alertname: "+name+", exp_alerts: [{") {
			t.Errorf("no test of rules_test.yml has %s fire", name)
		}
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("docs/operations.md does not explain %s", name)
		}
	}
	for name := range metrics {
		if strings.HasPrefix(name, "weaver_") && !strings.Contains(string(guide), "`"+name) {
			t.Errorf("docs/operations.md does not explain %s", name)
		}
	}
	for _, name := range aMetric.FindAllString(string(guide), -1) {
		if strings.HasPrefix(name, "weaver_") && metrics[name] == nil {
			t.Errorf("docs/operations.md: /metrics has no %s", name)
		}
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../deploy/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	metrics := exported(t)
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkExpr(t, p.Title, target.Expr, metrics)
		}
	}
	for _, file := range []string{"datasources/prometheus.yml", "dashboards/weaver.yml"} {
		yamlOf(t, "deploy/grafana/provisioning/"+file)
	}
}
