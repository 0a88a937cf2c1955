package clitest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestE2EReadmeHTTP runs the commands of docs/getting-started.md, "From another language",
// after the README's program, which then runs the task that curl submitted. Only the port differs.
func TestE2EReadmeHTTP(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	_, section, found := strings.Cut(read(t, "../../docs/getting-started.md"), "\n## From another language\n")
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(section)
	if !found || block == nil {
		t.Fatal("docs/getting-started.md has no commands over HTTP")
	}
	const base, serve = "http://127.0.0.1:8080", "weaver serve "
	var token, server, submit string
	for line := range strings.Lines(block[1]) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "TOKEN="):
			token = line
		case strings.HasPrefix(line, serve):
			command, _, background := strings.Cut(line, " &")
			if !background {
				t.Fatalf("the server is not started in the background: %s", line)
			}
			server = strings.Replace(command, serve, serve+"--addr 127.0.0.1:0 ", 1)
		case strings.Contains(line, base+"/"):
			submit = strings.ReplaceAll(line, base, "$URL")
		default:
			t.Fatalf("not understood: %s", line)
		}
	}
	dir := devModule(t)
	write(t, filepath.Join(dir, "section.sh"), `set -eu
go build -o app .
./app
`+token+`
`+server+` >serve.out 2>&1 &
SERVER=$!
until grep -q 'serving http' serve.out; do sleep 0.05; kill -0 $SERVER || { cat serve.out; exit 1; }; done
URL=$(sed -n 's|.*serving \(http://[^ ]*\)/ .*|\1|p' serve.out)
`+submit+` >answer
cat answer
echo; echo again; ./app
curl -H "Authorization: Bearer $TOKEN" "$URL/v1/tasks/$(jq -r .id answer)?wait=30s"
kill $SERVER; wait $SERVER
`)
	p := startProgram(t, dir, "sh", "section.sh")
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.says("hello Ada, you are number 42 <nil>", `"task_type":"acme.demo.greet.v1","disposition":"created"`, "again", `"state":"succeeded"`)
}

// TestReadmePipeline runs the README's pipeline as it stands there, and its commands.
func TestReadmePipeline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	block := regexp.MustCompile("(?s)```yaml\n# report.yaml\n(.*?)```").FindStringSubmatch(read(t, "../../README.md"))
	if block == nil {
		t.Fatal("README.md has no report.yaml")
	}
	write(t, filepath.Join(dir, "report.yaml"), block[1])
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"check", "report.yaml"}, 0, "no mistakes"},
		{[]string{"run", "report.yaml", "-p", "day=2026-11-21"}, 1, "ok: waits for a person: Publish 2026-11-21?"},
		{[]string{"why", "report"}, 0, "Publish 2026-11-21?"},
		{[]string{"logs", "report/convert[north]"}, 0, "north of 2026-11-21"},
		{[]string{"task", "unblock", "report/ok"}, 0, ""},
		{[]string{"run", "report.yaml", "-p", "day=2026-11-21"}, 0, "publish| published 7"},
	} {
		p := start(t, dir, step.args...)
		if code := p.end(); code != step.code {
			t.Fatalf("%v: exit code %d, want %d:\n%s", step.args, code, step.code, p.stdout.String())
		}
		p.says(step.says)
	}
}

// TestPipelineBlocks checks the YAML blocks of docs/pipelines.md. A block whose first line is a
// comment with a path is a file that others include; a block without a name gets one.
func TestPipelineBlocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"check"}
	for i, block := range regexp.MustCompile("(?s)```yaml\n(# (\\S+\\.yaml)\n)?(.*?)```").FindAllStringSubmatch(read(t, "../../docs/pipelines.md"), -1) {
		name, text := block[2], block[3]
		if name == "" {
			name = fmt.Sprintf("block%d.yaml", i)
			args = append(args, name)
			if !strings.Contains("\n"+text, "\nname:") {
				text = "name: block\n" + text
			}
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	if len(args) < 8 {
		t.Fatalf("docs/pipelines.md has %d blocks: has its form changed?", len(args)-1)
	}
	p := start(t, dir, args...)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.stdout.String())
	}
}
