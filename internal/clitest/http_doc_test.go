package clitest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is a command of a session in the docs, with its output.
type shown struct{ command, output string }

// session reads the commands of a page's ```console blocks: lines that begin with $.
func session(t *testing.T, page string) (list []shown) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(read(t, page), -1) {
		for line := range strings.Lines(block[1]) {
			if command, is := strings.CutPrefix(line, "$ "); is {
				list = append(list, shown{command: strings.TrimSpace(command)})
			} else if len(list) > 0 {
				list[len(list)-1].output += line
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s shows no session", page)
	}
	return list
}

// TestPages runs the sessions of pages in docs, each in one shell, and compares the
// output; … matches any text. Only the port of a server differs. curl and jq are those
// below: they need not be installed.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"http.md", "operating.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runPage(t, "../../docs/"+page)
		})
	}
}

func runPage(t *testing.T, page string) {
	dir := t.TempDir()
	steps := session(t, page)
	const base, serve = "http://127.0.0.1:8080", "weaver serve "
	script := "set -u\nURL=none\nSERVER=\n"
	for i, s := range steps {
		if file, is := strings.CutPrefix(s.command, "cat "); is && !strings.Contains(s.output, "…") {
			write(t, filepath.Join(dir, file), s.output)
		}
		command := strings.ReplaceAll(s.command, base, "$URL")
		if rest, is := strings.CutPrefix(command, serve); is {
			server := fmt.Sprintf("%s--addr 127.0.0.1:0 %s >out.%d 2>&1 &\nSERVER=$!\n", serve, strings.TrimSuffix(rest, "&"), i)
			script += server + fmt.Sprintf("until grep -q 'serving http' out.%[1]d; do sleep 0.05; kill -0 $SERVER || exit 1; done\nURL=$(sed -n 's|.*serving \\(http://[^ ]*\\)/ .*|\\1|p' out.%[1]d)\n", i)
			continue
		}
		script += fmt.Sprintf("{ %s\n} >out.%d 2>&1\n", command, i)
	}
	script += "echo stopping; test -z \"$SERVER\" || { kill $SERVER; wait $SERVER; }; echo ended $?\n"
	write(t, filepath.Join(dir, "session.sh"), script)
	p := startProgram(t, dir, "sh", "session.sh")
	p.end()
	p.says("ended 0")
	for i, s := range steps {
		got := read(t, filepath.Join(dir, fmt.Sprintf("out.%d", i)))
		want := "^" + strings.ReplaceAll(regexp.QuoteMeta(s.output), "…", ".*?") + "$"
		if !strings.HasPrefix(s.command, serve) && !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("$ %s\nprints\n%s\nand %s shows\n%s", s.command, got, page, s.output)
		}
	}
}

// curl implements the part of curl that the docs use.
func curl() {
	method, target, body, form, format := "", "", "", url.Values{}, ""
	query, isForm := false, false
	header := http.Header{}
	for args := os.Args[1:]; len(args) > 0; args = args[1:] {
		value := func() string {
			if args = args[1:]; len(args) == 0 {
				fatal("a flag without a value")
			}
			return args[0]
		}
		switch flag := args[0]; flag {
		case "-s":
		case "-G":
			query = true
		case "-X":
			method = value()
		case "-w":
			format = value()
		case "-H":
			name, v, _ := strings.Cut(value(), ":")
			header.Set(name, strings.TrimSpace(v))
		case "-d", "--data-urlencode":
			name, v, _ := strings.Cut(value(), "=")
			form.Add(name, v)
			isForm = true
		case "--json":
			body = value()
			if file, is := strings.CutPrefix(body, "@"); is {
				raw, err := os.ReadFile(file)
				if err != nil {
					fatal(err)
				}
				body = string(raw)
			}
			header.Set("Content-Type", "application/json")
			header.Set("Accept", "application/json")
			method = cmp.Or(method, http.MethodPost)
		default:
			if strings.HasPrefix(flag, "-") || target != "" {
				fatal("not understood: " + flag)
			}
			target = flag
		}
	}
	if isForm != query {
		fatal("-d is understood with -G only")
	}
	if query {
		target += "?" + form.Encode()
	}
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, target, content)
	if err != nil {
		fatal(err)
	}
	if r.Header = header; header.Get("Accept") == "" {
		header.Set("Accept", "*/*")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		fatal(err)
	}
	fmt.Print(strings.NewReplacer("%{http_code}", fmt.Sprint(res.StatusCode), `\n`, "\n").Replace(format))
}

// jq implements the part of jq that the docs use: jq -r .NAME FILE.
func jq() {
	if len(os.Args) != 4 || os.Args[1] != "-r" {
		fatal("want -r .NAME FILE")
	}
	raw, err := os.ReadFile(os.Args[3])
	if err != nil {
		fatal(err)
	}
	var of map[string]any
	if err := json.Unmarshal(raw, &of); err != nil {
		fatal(err)
	}
	fmt.Println(of[strings.TrimPrefix(os.Args[2], ".")])
}

func fatal(what any) {
	fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", what)
	os.Exit(2)
}
