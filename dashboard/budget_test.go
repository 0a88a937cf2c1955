package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Sizes in bytes that the files of the pages keep below.
const (
	mostScripts = 100 << 10 // all scripts, compressed
	mostStyle   = 15 << 10  // compressed
	mostFiles   = 600 << 10 // everything that is embedded
)

var foreign = regexp.MustCompile(`https?://[^"\x60]*|sourceMappingURL.*`)

// The files are small, and name no other host.
func TestBudget(t *testing.T) {
	zipped := map[string]int{}
	all := 0
	names, err := filepath.Glob("assets/*")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		all += len(b)
		zipped[filepath.Ext(name)] += out.Len()
		if filepath.Ext(name) == ".txt" {
			continue
		}
		for _, url := range foreign.FindAllString(string(b), -1) {
			if !strings.HasPrefix(url, "http://www.w3.org/") { // names of XML
				t.Errorf("%s has the address %s", name, url)
			}
		}
	}
	t.Logf("compressed: scripts %d bytes, style %d; all files %d", zipped[".js"], zipped[".css"], all)
	if zipped[".js"] > mostScripts || zipped[".css"] > mostStyle || all > mostFiles {
		t.Errorf("the files are over the budget: scripts %d of %d bytes compressed, style %d of %d, all %d of %d",
			zipped[".js"], mostScripts, zipped[".css"], mostStyle, all, mostFiles)
	}
}

// A program that does not import the dashboard does not contain it.
func TestOthersAreWithoutIt(t *testing.T) {
	const module = "github.com/goweaver/weaver"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module, module+"/httpapi", module+"/store/...", module+"/builtin", module+"/weavertest").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), module+"/dashboard\n") {
		t.Error("one of them imports the dashboard")
	}
}
