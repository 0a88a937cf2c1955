package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/goweaver/weaver/browser/page"
	"github.com/goweaver/weaver/dashboard"
)

// browserCmd groups the verbs of programs in a browser.
type browserCmd struct {
	Init  browserInitCmd  `cmd:"" help:"Write a program and its page that run in a browser and on this machine."`
	Build browserBuildCmd `cmd:"" help:"Build a program for a browser: a folder for any web server."`
	Serve browserServeCmd `cmd:"" help:"Serve such a folder on this machine."`
}

type browserBuildCmd struct {
	Pkg   string `arg:"" name:"package" default:"." help:"The package of the program, as for go build."`
	Out   string `short:"O" default:"site" placeholder:"DIR" help:"The folder to write; default ${default}."`
	Name  string `placeholder:"NAME" help:"Name of the program among those of the same origin; default: the name of its folder."`
	Pages string `placeholder:"DIR" help:"The folder with the pages; default: the folder web of the package, if there is one."`
	Tags  string `help:"Build tags, as for go build."`
	Plain bool   `help:"Leave out the compressed copies, for a web server that compresses."`
	Best  bool   `help:"Compress as much as possible, for minutes instead of seconds."`
}

// Help implements kong.HelpProvider.
func (browserBuildCmd) Help() string {
	return "The folder has the program (WebAssembly, with a compressed copy), the module weaver.js, the pages and the dashboard. " +
		"Files whose names have a hash never change: let browsers keep them. Browsers give files only to pages of https:// and of localhost. See docs/browser.md."
}

// small are the flags of the go command for a small download: functions are not copied into their callers, and the
// SQLite that was translated from C does without checks of bounds, as it does in C. See docs/adr/0076-size.md.
var small = []string{"-ldflags=-s -w", "-gcflags=all=-l", "-gcflags=github.com/ncruces/go-sqlite3-wasm/...=-B"}

// site is weaver.json: the files that weaver.js starts.
type site struct {
	Name   string `json:"name"`
	Wasm   string `json:"wasm"`
	Exec   string `json:"exec"`
	Worker string `json:"worker"`
}

// Run implements the verb.
func (c *browserBuildCmd) Run(ctx context.Context, s *session) error {
	pkg, err := c.find(ctx)
	if err != nil {
		return err
	}
	name := cmp.Or(c.Name, filepath.Base(pkg.Dir))
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	if err := c.clean(); err != nil {
		return err
	}
	program := filepath.Join(c.Out, "program.wasm")
	args := append([]string{"build", "-trimpath", "-o", program}, small...)
	if c.Tags != "" {
		args = append(args, "-tags", c.Tags)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, c.Pkg)...)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = s.errs, s.errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build for js/wasm: %w", err)
	}
	wasm, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := os.Remove(program); err != nil {
		return err
	}
	out := folder{c.Out, nil}
	made := site{Name: name}
	made.Wasm = out.hashed("program", ".wasm", wasm)
	goexec, err := os.ReadFile(filepath.Join(pkg.Root, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("the installation of Go lacks wasm_exec.js: %w", err)
	}
	made.Exec = out.hashed("wasm_exec", ".js", goexec)
	worker, err := fs.ReadFile(page.Files, "worker.js")
	if err != nil {
		return err
	}
	made.Worker = out.hashed("worker", ".js", worker)
	sizes := map[string]any{"folder": c.Out, "name": name, "wasm": made.Wasm, "bytes": len(wasm)}
	if !c.Plain {
		quality := 9
		if c.Best {
			quality = brotli.BestCompression
		}
		for ending, compress := range map[string]func(io.Writer) io.WriteCloser{
			".gz": func(w io.Writer) io.WriteCloser { z, _ := gzip.NewWriterLevel(w, gzip.BestCompression); return z }, // a known level
			".br": func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, quality) },
		} {
			small, err := compressed(wasm, compress)
			if err != nil {
				return err
			}
			out.write(made.Wasm+ending, small)
			sizes[strings.TrimPrefix(ending, ".")] = len(small)
		}
	}
	for _, file := range []string{"weaver.js", "weaver.d.ts", "dashboard.js"} {
		b, err := fs.ReadFile(page.Files, file)
		if err != nil {
			return err
		}
		out.write(file, b)
	}
	config, err := json.Marshal(made)
	if err != nil {
		return err
	}
	out.write("weaver.json", config)
	dash, err := dashboard.NewStatic(name, "../dashboard.js")
	if err != nil {
		return err
	}
	files, err := dash.Files()
	if err != nil {
		return err
	}
	for file, b := range files {
		out.write("dashboard/"+file, b)
	}
	if err := c.copyPages(pkg.Dir, &out); err != nil {
		return err
	}
	if out.err != nil {
		return out.err
	}
	if s.json() {
		return s.writeJSON(sizes)
	}
	s.printf("%s: %s, %.1f MB%s. Look at it with: %s browser serve %s\n", c.Out, made.Wasm, float64(len(wasm))/1e6, compressedSize(sizes["br"]), s.app.Name, c.Out)
	return nil
}

// built is the package as the go command describes it.
type built struct {
	Dir  string
	Name string
	Root string // GOROOT
}

func (c *browserBuildCmd) find(ctx context.Context) (p built, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}\n{{.Name}}", c.Pkg)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return p, fmt.Errorf("the package %s: %w: %s", c.Pkg, err, strings.TrimSpace(errs.String()))
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return p, fmt.Errorf("%s is %d packages: name one", c.Pkg, len(lines)/2)
	}
	p.Dir, p.Name = lines[0], lines[1]
	if p.Name != "main" {
		return p, fmt.Errorf("the package %s is %s: name one with a func main that calls browser.Main", c.Pkg, p.Name)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return p, fmt.Errorf("go env GOROOT: %w", err)
	}
	p.Root = strings.TrimSpace(string(root))
	return p, nil
}

// clean removes the files of an earlier build, whose names have other hashes. It refuses a folder of something else.
func (c *browserBuildCmd) clean() error {
	entries, err := os.ReadDir(c.Out)
	if err != nil || len(entries) == 0 {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.Out, "weaver.json")); err != nil {
		return fmt.Errorf("the folder %s has files of something else (it lacks weaver.json): name a new folder with --out", c.Out)
	}
	for _, e := range entries {
		for _, pattern := range []string{"program-*.wasm*", "wasm_exec-*.js", "worker-*.js", "dashboard"} {
			if ok, _ := filepath.Match(pattern, e.Name()); ok {
				if err := os.RemoveAll(filepath.Join(c.Out, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *browserBuildCmd) copyPages(dir string, out *folder) error {
	from := cmp.Or(c.Pages, filepath.Join(dir, "web"))
	if _, err := os.Stat(from); err != nil {
		if c.Pages == "" && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("the folder of the pages: %w", err)
	}
	pages := os.DirFS(from)
	return fs.WalkDir(pages, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := fs.ReadFile(pages, path)
		if err == nil {
			out.write(path, b)
		}
		return err
	})
}

// folder is the folder that is written. Its first error stays.
type folder struct {
	path string
	err  error
}

func (f *folder) write(name string, b []byte) {
	if f.err != nil {
		return
	}
	path := filepath.Join(f.path, filepath.FromSlash(name))
	if f.err = os.MkdirAll(filepath.Dir(path), 0o755); f.err == nil {
		f.err = os.WriteFile(path, b, 0o644)
	}
}

// hashed writes a file whose name has a hash of its content, and returns the name.
func (f *folder) hashed(name, ext string, b []byte) string {
	sum := sha256.Sum256(b)
	name += "-" + hex.EncodeToString(sum[:6]) + ext
	f.write(name, b)
	return name
}

func compressed(b []byte, compress func(io.Writer) io.WriteCloser) ([]byte, error) {
	var out bytes.Buffer
	z := compress(&out)
	_, err := z.Write(b)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// compressedSize returns the size of the download as text.
func compressedSize(n any) string {
	if n, ok := n.(int); ok {
		return fmt.Sprintf(" (%.1f MB compressed)", float64(n)/1e6)
	}
	return ""
}
