package clitest_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedCommands checks the weaver commands in the shell blocks of README.md and docs: each
// command and each of its flags is in the help of that command.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	help := make(map[string]string)
	checked := 0
	for _, page := range append(pages, "../../README.md") {
		for _, block := range regexp.MustCompile("(?sm)^```([a-z]*)\n(.*?)^```").FindAllStringSubmatch(read(t, page), -1) {
			if block[1] != "sh" && block[1] != "console" && block[1] != "" {
				continue
			}
			for line := range strings.Lines(block[2]) {
				line, _, _ = strings.Cut(strings.TrimPrefix(line, "$ "), " #")
				for _, command := range weaverCommand.FindAllStringSubmatch(line, -1) {
					words := strings.Fields(command[1])
					verb := words[:min(1, len(words))]
					if len(words) > 1 && groups[words[0]] {
						verb = words[:2]
					}
					name := strings.Join(verb, " ")
					if _, known := help[name]; !known {
						p := start(t, t.TempDir(), append(append([]string(nil), verb...), "--help")...)
						if code := p.end(); code != 0 {
							t.Errorf("%s: weaver %s: there is no such command:\n%s", page, name, p.stderr.String())
						}
						help[name] = p.stdout.String()
					}
					checked++
					for _, flag := range regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]+)`).FindAllStringSubmatch(command[1], -1) {
						if !strings.Contains(help[name], flag[1]) && !strings.Contains(help[name], "[no-]"+strings.TrimPrefix(flag[1], "--")) {
							t.Errorf("%s: weaver %s has no flag %s", page, name, flag[1])
						}
					}
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("checked %d commands: has the form of the pages changed?", checked)
	}
}

// weaverCommand finds a command up to the end of its part of a shell line.
var weaverCommand = regexp.MustCompile(`(?:^|[;&|(]\s*|go run \./cmd/)weaver ([a-z][^;&|)>]*)`)

// groups are the commands with verbs below them.
var groups = map[string]bool{
	"task": true, "job": true, "queue": true, "artifact": true, "migrate": true, "codec": true, "token": true, "order": true, "decide": true,
}
