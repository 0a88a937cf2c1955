package cli_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/goweaver/weaver/blob/s3"
	"github.com/goweaver/weaver/cli"
)

// yamlOf reads the documents of a YAML file.
func yamlOf(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, doc)
	}
}

// in returns a value in nested maps and lists; nil if it is missing.
func in(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			list, _ := v.([]any)
			if p >= len(list) {
				return nil
			}
			v = list[p]
		}
	}
	return v
}

func words(v any) (all []string) {
	list, _ := v.([]any)
	for _, w := range list {
		s, _ := w.(string)
		all = append(all, s)
	}
	return all
}

// command parses a command line of a file.
func command(t *testing.T, where string, args []string) cli.Parsed {
	t.Helper()
	p, err := cli.ParseService(args)
	if err != nil {
		t.Errorf("%s: weaver %s: %v", where, strings.Join(args, " "), err)
	}
	return p
}

// within returns the bucket of an environment and the addresses of its servers.
func within(t *testing.T, where string, env any) (bucket, s3Addr, redisAddr string) {
	t.Helper()
	rawBucket, _ := in(env, "WEAVER_BUCKET").(string)
	bucket, o, err := s3.Parse(rawBucket)
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	rawDelivery, _ := in(env, "WEAVER_DELIVERY").(string)
	u, err := url.Parse(rawDelivery)
	if err != nil || u.Scheme != "redis" {
		t.Fatalf("%s: WEAVER_DELIVERY is %q, %v", where, rawDelivery, err)
	}
	return bucket, o.Endpoint, u.Host
}

// probes checks that a URL or path is one that the process at addr serves.
func probes(t *testing.T, where, addr, rawURL string) {
	t.Helper()
	u, err := url.Parse(rawURL)
	_, port, addrErr := net.SplitHostPort(addr)
	if err != nil || addrErr != nil || u.Port() != port || !slices.Contains(cli.HealthPaths, u.Path) {
		t.Errorf("%s: the probe %s does not fit %q (%v)", where, rawURL, addr, addrErr)
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	m := regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD \["/weaver", "(\w+)"\]$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("no HEALTHCHECK by the program")
	}
	port := regexp.MustCompile(`(?m)^EXPOSE (\d+)$`).FindStringSubmatch(text)
	probes(t, "Dockerfile", ":"+port[1], command(t, "Dockerfile", m[1:]).URL)
	for _, want := range []string{"CGO_ENABLED=0", "GOOS=$TARGETOS GOARCH=$TARGETARCH", "\nFROM scratch\n", "\nUSER 65532:65532\n", "ca-certificates.crt", "timetzdata"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`GO_IMAGE=golang:(\S+)`).FindStringSubmatch(text)
	if image == nil || !strings.Contains(string(mod), "\ngo "+image[1]+".") {
		t.Errorf("the image %q has not the Go version of go.mod", image)
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	doc := yamlOf(t, "compose.yaml")[0]
	services, _ := doc["services"].(map[string]any)
	raw, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := string(raw)
	volumes, _ := doc["volumes"].(map[string]any)
	addrs := make(map[string]string)
	ours, builds := 0, 0
	for name, v := range services {
		mounted := make(map[string]bool)
		for _, m := range words(in(v, "volumes")) {
			parts := strings.Split(m, ":")
			mounted[parts[1]] = true
			if _, named := volumes[parts[0]]; strings.HasPrefix(parts[0], "./") {
				if _, err := os.Stat(filepath.Join("..", parts[0])); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else if !named {
				t.Errorf("%s: the volume %s is not declared", name, parts[0])
			}
		}
		needs, _ := in(v, "depends_on").(map[string]any)
		for need, how := range needs {
			if services[need] == nil {
				t.Errorf("%s depends on %s, which is not there", name, need)
			}
			if in(how, "condition") == "service_healthy" && in(services[need], "healthcheck") == nil {
				t.Errorf("%s waits for the health of %s, which has no check", name, need)
			}
		}
		if in(v, "image") != "weaver:local" {
			continue
		}
		ours++
		if in(v, "build") != nil {
			builds++
		}
		bucket, s3Addr, redisAddr := within(t, name, in(v, "environment"))
		p := command(t, name, append(words(in(v, "command")), "--delivery", "redis://"+redisAddr))
		if port, _ := in(services["s3"], "environment", "VGW_PORT").(string); s3Addr != "s3"+port || !strings.Contains(dockerfile, "/buckets/"+bucket+" ") {
			t.Errorf("%s: there is no bucket %s at %s", name, bucket, s3Addr)
		}
		if host, port, err := net.SplitHostPort(redisAddr); err != nil || services[host] == nil || port != "6379" {
			t.Errorf("%s: no Redis at %s", name, redisAddr)
		}
		for _, file := range p.Files {
			if file != "" && !mounted[filepath.Dir(file)] {
				t.Errorf("%s: %s is on no volume", name, file)
			}
		}
		if p.Drain == 0 {
			continue // it ends by itself
		}
		addrs[name] = p.Addr
		test := words(in(v, "healthcheck", "test"))
		if len(test) < 3 || test[0] != "CMD" || test[1] != "/weaver" {
			t.Errorf("%s: the health check is %q", name, test)
			continue
		}
		probes(t, name, p.Addr, command(t, name, test[2:]).URL)
		grace, _ := in(v, "stop_grace_period").(string)
		if d, err := time.ParseDuration(grace); err != nil || d <= p.Drain {
			t.Errorf("%s: it is killed after %q, and drains for %s", name, grace, p.Drain)
		}
		if in(v, "depends_on", "migrate", "condition") != "service_completed_successfully" {
			t.Errorf("%s does not wait for the schema", name)
		}
	}
	for name, v := range services {
		if image, _ := in(v, "image").(string); image != "weaver:local" && !regexp.MustCompile(`:v?\d`).MatchString(image) {
			t.Errorf("%s: the image %s has no version", name, image)
		}
	}
	if ours != 6 || builds != 1 || len(addrs) != 3 {
		t.Errorf("%d services of weaver, %d of them build the image, addresses %v", ours, builds, addrs)
	}

	scraped := 0
	for i := range 2 {
		for _, target := range words(in(yamlOf(t, "deploy/prometheus/prometheus.yml")[0], "scrape_configs", i, "static_configs", 0, "targets")) {
			scraped++
			if host, port, err := net.SplitHostPort(target); err != nil || addrs[host] != ":"+port {
				t.Errorf("prometheus.yml: %s is none of %v", target, addrs)
			}
		}
	}
	if scraped != len(addrs) {
		t.Errorf("prometheus.yml has %d targets of %d", scraped, len(addrs))
	}
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	kinds, images, labels := make(map[string]int), make(map[any]bool), make(map[any]bool)
	var selected []any
	config := yamlOf(t, "deploy/kubernetes/config.yaml")[0]
	_, _, redisAddr := within(t, "config", config["data"])
	const component = "app.kubernetes.io/component"
	for _, file := range []string{"migrate", "api", "worker"} {
		for _, doc := range yamlOf(t, "deploy/kubernetes/"+file+".yaml") {
			kind, _ := doc["kind"].(string)
			kinds[kind]++
			switch kind {
			case "PodDisruptionBudget":
				selected = append(selected, in(doc, "spec", "selector", "matchLabels", component))
				continue
			case "Service":
				selected = append(selected, in(doc, "spec", "selector", component))
				if in(doc, "spec", "ports", 0, "targetPort") != "http" {
					t.Errorf("the service goes to %v", in(doc, "spec", "ports", 0, "targetPort"))
				}
				continue
			}
			pod := in(doc, "spec", "template", "spec")
			box := in(pod, "containers", 0)
			images[in(box, "image")] = true
			if in(pod, "securityContext", "runAsNonRoot") != true {
				t.Errorf("%s runs as root", file)
			}
			if in(box, "envFrom", 0, "configMapRef", "name") != in(config, "metadata", "name") {
				t.Errorf("%s has its environment from %v", file, in(box, "envFrom"))
			}
			p := command(t, file, append(words(in(box, "args")), "--delivery", "redis://"+redisAddr))
			if kind == "Job" {
				continue
			}
			of := in(doc, "spec", "template", "metadata", "labels", component)
			labels[of] = true
			selected = append(selected, in(doc, "spec", "selector", "matchLabels", component))
			if grace, _ := in(pod, "terminationGracePeriodSeconds").(uint64); time.Duration(grace)*time.Second <= p.Drain {
				t.Errorf("%s: it is killed after %d s, and drains for %s", file, grace, p.Drain)
			}
			_, port, _ := net.SplitHostPort(p.Addr)
			if got := in(box, "ports", 0, "containerPort"); got != uint64(8080) || port != "8080" || in(box, "ports", 0, "name") != "http" {
				t.Errorf("%s listens on %q, its port is %v", file, p.Addr, got)
			}
			for probe, path := range map[string]string{"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"} {
				if in(box, probe, "httpGet", "path") != path || in(box, probe, "httpGet", "port") != "http" || !slices.Contains(cli.HealthPaths, path) {
					t.Errorf("%s: %s is %v", file, probe, in(box, probe))
				}
			}
		}
	}
	for _, s := range selected {
		if !labels[s] {
			t.Errorf("the component %v is selected, and no pod has it", s)
		}
	}
	if len(images) != 1 || kinds["Job"] != 1 || kinds["Deployment"] != 2 || kinds["PodDisruptionBudget"] != 2 || kinds["Service"] != 1 {
		t.Errorf("images %v, kinds %v", images, kinds)
	}
}

func TestSystemd(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("../deploy/systemd/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("units %q, %v", units, err)
	}
	line := regexp.MustCompile(`(?m)^(ExecStart|TimeoutStopSec|KillMode)=(.+)$`)
	for _, unit := range units {
		raw, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		keys := make(map[string]string)
		for _, m := range line.FindAllStringSubmatch(string(raw), -1) {
			keys[m[1]] = m[2]
		}
		args := strings.Fields(strings.ReplaceAll(keys["ExecStart"], "%i", "1"))
		if len(args) < 2 || args[0] != "/usr/local/bin/weaver" {
			t.Fatalf("%s starts %q", unit, args)
		}
		p := command(t, unit, args[1:])
		if p.Drain == 0 {
			continue
		}
		// Without the mode, commands of running tasks get the first SIGTERM, too.
		if d, err := time.ParseDuration(keys["TimeoutStopSec"] + "s"); err != nil || d <= p.Drain || keys["KillMode"] != "mixed" {
			t.Errorf("%s: it is killed after %s s (%v), and drains for %s; KillMode=%s", unit, keys["TimeoutStopSec"], err, p.Drain, keys["KillMode"])
		}
	}
}
