package archtest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule lists the allowed imports of a package besides the standard library. Packages of this module are named from
// its root ("." is the root package); "x/..." means everything below x.
type rule struct {
	ours     []string // packages of this module
	libs     []string // other modules
	testLibs []string // further modules, in its tests only
}

// The layers, from the bottom up. A package may import only lower ones.
var (
	values     = []string{"task", "task/event"}
	ports      = join(values, "decide", "store", "delivery", "blob", "order", "codec")
	adapters   = []string{"store/memstore", "store/sqlite", "store/postgres", "delivery/redis", "delivery/kafka", "blob/s3", "blob/zstd", "codec/aesgcm"}
	helpers    = []string{"internal/filelock", "internal/group", "internal/batch", "internal/migrate", "internal/rules", "internal/propagate", "internal/lane", "internal/notify", "internal/clock", "internal/owned", "internal/workerlock", "internal/sqlstmt", "internal/sqlstore", "internal/pgharness"}
	library    = join(ports, "ops", ".")
	extensions = join(library, "schema", "httpapi", "httpapi/client", "builtin", "ordertask")
	all        = join(join(extensions, adapters...), "weavertest", "dashboard", "browser", "browser/page", "cli")
)

// Libraries, each with its reason in docs/adr/0009-dependencies.md.
const (
	ulid    = "github.com/oklog/ulid/v2"
	ncruces = "github.com/ncruces/go-sqlite3"
	xsys    = "golang.org/x/sys"
	pgx     = "github.com/jackc/pgx/v5"
	kong    = "github.com/alecthomas/kong"
	xterm   = "golang.org/x/term"
)

// importRules is the import graph: one line per package, including planned ones.
var importRules = map[string]rule{
	"task":       {libs: []string{ulid}},
	"task/event": {ours: []string{"task", "internal/jsonnumber"}},
	"decide":     {ours: values},
	"store":      {ours: values},
	"delivery":   {ours: values},
	"blob":       {ours: join(values, "internal/owned")},
	"order":      {ours: join(values, "internal/group", "internal/batch", "internal/jsonfields", "internal/rules"), libs: []string{"github.com/gowebpki/jcs", "github.com/shopspring/decimal"}},
	"codec":      {},

	// Conformance suites: only their port and the standard library, so that authors of adapters can run them.
	"store/storetest":       {ours: join(values, "store")},
	"delivery/deliverytest": {ours: join(values, "delivery")},
	"blob/blobtest":         {ours: join(values, "blob")},
	"codec/aesgcm":          {ours: []string{"codec", "internal/plainfile"}},
	"blob/zstd":             {ours: []string{"blob"}, libs: []string{"github.com/klauspost/compress"}},
	"order/ordertest":       {ours: join(values, "order", "store")},

	"store/memstore":              {ours: join(values, "store", "order", "internal/jsonnumber", "internal/lane", "internal/rules", "internal/orderrules", "internal/notify", "internal/clock")},
	"store/sqlite":                {ours: join(join(values, helpers...), "store", "order", "internal/filelock", "store/sqlite/internal/..."), libs: []string{ncruces, xsys}},
	"store/sqlite/internal/...":   {ours: join(join(values, helpers...), "store", "internal/promise", "store/sqlite/internal/..."), libs: []string{ncruces, xsys}},
	"store/postgres":              {ours: join(join(values, helpers...), "store", "order", "store/postgres/internal/..."), libs: []string{pgx}},
	"store/postgres/internal/...": {ours: join(join(values, helpers...), "store", "store/postgres/internal/..."), libs: []string{pgx}},
	"delivery/redis":              {ours: join(join(values, helpers...), "delivery"), libs: []string{"github.com/redis/rueidis"}},
	"delivery/kafka":              {ours: join(join(values, helpers...), "delivery"), libs: []string{"github.com/twmb/franz-go"}},
	"blob/s3":                     {ours: join(join(values, helpers...), "blob"), libs: []string{"github.com/minio/minio-go/v7"}},

	"internal/group":             {},
	"internal/plainfile":         {},
	"internal/build":             {},
	"internal/batch":             {ours: []string{"internal/group"}},
	"internal/migrate":           {ours: join(values, "store")},
	"internal/rules":             {ours: join(values, "store")},
	"internal/option":            {ours: values},
	"internal/propagate":         {ours: join(values, "store", "internal/rules")},
	"internal/clock":             {},
	"internal/sqlstmt":           {ours: join(values, "internal/jsonnumber")},
	"internal/sqlstore/sqltext":  {ours: []string{"internal/sqlstore"}},
	"internal/sealorder":         {ours: join(values, "store", "order", "internal/seal")},
	"internal/orderrules":        {ours: join(values, "order")},
	"internal/sqlstore":          {ours: join(values, "store", "order", "internal/orderrules", "internal/lane", "internal/option", "internal/propagate", "internal/rules", "internal/sqlstmt")},
	"internal/pgharness":         {},
	"internal/lane":              {ours: join(values, "store")},
	"internal/workerlock":        {ours: join(values, "store", "internal/filelock", "internal/owned")},
	"internal/notify":            {ours: join(values, "store")},
	"internal/seal":              {ours: join(values, "store", "blob", "codec", "internal/group")},
	"internal/redact":            {ours: join(values, "store", "internal/jsonnumber")},
	"internal/engine":            {ours: join(ports, "internal/build", "internal/group", "internal/batch", "internal/redact", "internal/rules", "internal/schedule", "internal/seal")},
	"internal/query":             {ours: join(values, "store", "internal/typo")},
	"internal/faults":            {},
	"internal/faults/storehook":  {ours: join(values, "store")},
	"internal/faults/faultstore": {ours: join(values, "store", "internal/faults/storehook")},
	"internal/mutation":          {},
	"internal/mutation/guards":   {ours: []string{"internal/mutation"}},
	"internal/release":           {},
	"internal/procgroup":         {libs: []string{xsys}},
	"internal/mcpserver":         {ours: join(library, "internal/jsonfields", "internal/redact", "internal/typo"), libs: []string{"github.com/modelcontextprotocol/go-sdk"}},
	"internal/devrun":            {ours: []string{"internal/filelock", "internal/group", "internal/procgroup"}},
	"internal/mutation/mutants":  {ours: []string{"internal/mutation", "internal/mutation/mutants/mutant"}},
	"internal/archtest":          {},
	"internal/faults/disktest":   {libs: []string{ncruces}},
	"internal/pgtest":            {libs: []string{pgx}},
	"internal/redistest":         {},
	"internal/s3test":            {libs: []string{"github.com/minio/minio-go/v7"}},
	"internal/faults/refusetest": {ours: library},
	"internal/httpcontract":      {libs: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},

	"internal/mutation/mutants/mutant": {},

	"internal/systemtest": {},
	"internal/systemtest/...": {
		ours:     join(all, "internal/..."),
		testLibs: []string{"pgregory.net/rapid", "github.com/anishathalye/porcupine", "go.uber.org/goleak", "github.com/chromedp/chromedp", "github.com/chromedp/cdproto"},
	},
	"internal/clitest": {ours: join(all, "internal/..."), testLibs: []string{"github.com/rogpeppe/go-internal", "github.com/creack/pty", "github.com/modelcontextprotocol/go-sdk", pgx}},
	"internal/pipeline": {
		ours:     join(library, "builtin", "internal/calendar", "internal/option", "internal/pipeline/dag", "internal/pipeline/template", "internal/pipeline/value", "internal/text", "internal/typo"),
		libs:     []string{"github.com/goccy/go-yaml"},
		testLibs: []string{"github.com/santhosh-tekuri/jsonschema/v6"},
	},
	"internal/pipeline/dag":      {ours: []string{"internal/text"}},
	"internal/pipeline/template": {},
	"internal/pipeline/value":    {ours: []string{"task", "internal/pipeline/template"}},
	"internal/pipeline/view":     {ours: join(library, "internal/explain", "internal/group", "internal/text"), libs: []string{"github.com/rivo/uniseg", xterm}},
	"internal/capsule":           {ours: join(library, "internal/jsonnumber", "internal/redact", "internal/rules", "internal/seal", "internal/sqlstmt")},
	"internal/explainread":       {ours: join(library, "internal/explain", "internal/redact", "internal/text")},
	"internal/explain":           {ours: join(values, "store", "order", "internal/text")},
	"internal/preview":           {ours: join(values, "store", "internal/rules")},
	"internal/text":              {ours: values, libs: []string{"github.com/rivo/uniseg"}},
	"internal/typo":              {},
	"internal/calendar":          {ours: []string{"internal/typo"}},
	"internal/schedule":          {ours: join(values, "store", "internal/calendar")},
	"internal/filelock":          {},
	"internal/privatefile":       {ours: []string{"internal/filelock"}},
	"internal/jsonnumber":        {},
	"internal/owned":             {},
	"internal/promise":           {},
	"internal/jsonfields":        {ours: []string{"internal/typo"}},

	"internal/vet": {},

	"internal/storebench": {ours: join(library, "internal/group")},
	"internal/attemptlog": {ours: []string{"internal/filelock", "internal/owned", "task"}},

	"ops":            {ours: join(values, "store", "internal/query", "internal/redact")},
	".":              {ours: join(ports, "ops", "internal/calendar", "internal/engine", "internal/group", "internal/jsonfields", "internal/option", "internal/preview", "internal/query", "internal/redact", "internal/schedule", "internal/seal"), libs: []string{ulid}},
	"weavertest":     {ours: join(library, "store/sqlite", "store/memstore", "internal/capsule", "internal/sealorder")},
	"schema":         {ours: join(library, "internal/jsonfields", "internal/option"), libs: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"httpapi":        {ours: join(library, "schema", "httpapi/client", "internal/explain", "internal/explainread", "internal/group", "internal/sealorder", "httpapi/wire", "internal/jsonfields", "internal/option", "internal/plainfile", "internal/privatefile", "internal/redact", "internal/text", "internal/typo"), libs: []string{"github.com/prometheus/client_golang"}},
	"httpapi/client": {ours: join(library, "httpapi/wire", "internal/option")},
	"httpapi/wire":   {ours: library},
	"builtin":        {ours: join(library, "internal/engine", "internal/group", "internal/jsonnumber", "internal/plainfile", "internal/procgroup", "internal/pipeline/template", "internal/text", "internal/pipeline/value")},
	"ordertask":      {ours: join(library, "internal/engine", "internal/orderrules", "internal/sealorder")},
	"dashboard":      {ours: join(library, "httpapi", "httpapi/wire")},
	"cli":            {ours: join(join(extensions, adapters...), "dashboard", "browser/page", "internal/attemptlog", "internal/build", "internal/capsule", "internal/devrun", "internal/group", "internal/explain", "internal/explainread", "internal/mcpserver", "internal/option", "internal/pipeline", "internal/pipeline/dag", "internal/pipeline/view", "internal/plainfile", "internal/preview", "internal/privatefile", "internal/redact", "internal/seal", "internal/sealorder", "internal/storebench", "internal/text", "internal/typo", "internal/pipeline/value", "internal/vet"), libs: []string{kong, "github.com/prometheus/client_golang", "github.com/andybalholm/brotli"}, testLibs: []string{"github.com/goccy/go-yaml"}},
	"cmd/...":        {ours: join(library, "cli", "builtin", "ordertask")},
	"browser":        {ours: join(join(extensions, adapters...), "dashboard", "browser/page", "internal/capsule", "internal/group", "internal/promise", "internal/sealorder")},
	"browser/page":   {},
	"examples/...":   {ours: all},
	"docs":           {ours: all},
}

func join(names []string, more ...string) []string { return slices.Concat(names, more) }

// ruleOf returns the rule of a package of this module.
func ruleOf(name string) (rule, bool) {
	if r, ok := importRules[name]; ok {
		return r, true
	}
	for pattern, r := range importRules {
		if matches(pattern, name) {
			return r, true
		}
	}
	return rule{}, false
}

// matches reports whether a name in a rule matches a package.
func matches(pattern, name string) bool {
	dir, below := strings.CutSuffix(pattern, "/...")
	return pattern == name || below && strings.HasPrefix(name, dir+"/")
}

func allowed(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// fromModule reports whether a package belongs to one of the modules.
func fromModule(modules []string, importPath string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return importPath == m || strings.HasPrefix(importPath, m+"/")
	})
}

func TestEveryPackageHasAnImportRule(t *testing.T) {
	t.Parallel()
	for name := range packages(t) {
		if _, ok := ruleOf(name); !ok {
			t.Errorf("package %s has no import rule: add a line with what it may import to importRules in internal/archtest/imports_test.go, "+
				"or move the code into a package that has one", name)
		}
	}
}

func TestImportGraph(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		r, ok := ruleOf(name)
		if !ok {
			continue // reported by TestEveryPackageHasAnImportRule
		}
		for imported := range p.imports {
			dep, ours := relative(imported)
			switch {
			case standard(imported):
			case ours && !allowed(r.ours, dep):
				t.Errorf("%s imports %s, which is not below it: move what both need into a lower package, or pass it in; "+
					"if the design itself changed, write an ADR and change importRules", name, dep)
			case !ours && !fromModule(r.libs, imported):
				t.Errorf("%s imports %s: use the standard library, or give the library a line in docs/adr/0009-dependencies.md and in importRules", name, imported)
			}
		}
	}
}

// Test libraries end up in the go.sum of users, so they stay out of every package that a user can import.
func TestTestsUseTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		r, _ := ruleOf(name)
		for imported := range p.testImports {
			_, ours := relative(imported)
			if !ours && !standard(imported) && !fromModule(join(r.libs, r.testLibs...), imported) {
				t.Errorf("the tests of %s import %s: write them with package testing alone, or put them into internal/systemtest (rapid, porcupine, goleak, chromedp) "+
					"or internal/clitest (testscript)", name, imported)
			}
		}
	}
}

// importRules covers direct imports; this test covers everything that is linked.
func TestAdaptersAreIndependent(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for name := range all {
		if !slices.Contains(adapters, name) {
			continue
		}
		for dep, by := range deps(all, name) {
			if slices.Contains(adapters, dep) {
				t.Errorf("adapter %s depends on adapter %s (imported by %s): move what both need into internal/ or their port", name, dep, by)
			}
		}
	}
}

func TestOnlyTheTopImportsAdapters(t *testing.T) {
	t.Parallel()
	top := []string{"cli", "cmd/...", "examples/...", "browser", "weavertest", "internal/systemtest/...", "internal/clitest"}
	all := packages(t)
	for name := range all {
		if allowed(top, name) || slices.Contains(adapters, name) {
			continue
		}
		for dep, by := range deps(all, name) {
			if slices.Contains(adapters, dep) {
				t.Errorf("%s depends on adapter %s (imported by %s): take the port's interface as an argument; only %s and tests compose adapters",
					name, dep, by, strings.Join(top, ", "))
			}
		}
	}
}

// A program that imports only the client of the HTTP API links no server.
func TestHTTPClientLinksNoServer(t *testing.T) {
	t.Parallel()
	all := packages(t)
	linked := deps(all, "httpapi/client")
	linked["httpapi/client"] = "a program"
	for dep, by := range linked {
		if slices.Contains([]string{"httpapi", "schema", "dashboard", "cli", "internal/mcpserver"}, dep) {
			t.Errorf("httpapi/client links %s (imported by %s): move what both need into httpapi/wire", dep, by)
		}
		if all[dep] == nil {
			t.Errorf("httpapi/client links %s, which this test does not know", dep)
			continue
		}
		for imported := range all[dep].imports {
			if _, ours := relative(imported); !ours && !standard(imported) && !fromModule([]string{ulid}, imported) {
				t.Errorf("httpapi/client links %s (imported by %s): only %s and the standard library may come with it", imported, dep, ulid)
			}
		}
	}
}

// The dependencies of a program that imports only weaver: the libraries of its packages, and their dependencies.
func TestRootIsLight(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Dir = repoRoot
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if _, ours := relative(dep); !ours && !standard(dep) && !fromModule([]string{ulid}, dep) {
			t.Errorf("package weaver links %s: only %s and the standard library may come with it; move the code that needs it into an adapter or above", dep, ulid)
		}
	}
}

// A program in a tab downloads all that it links.
func TestTabLinksNoServer(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "./examples/browser")
	cmd.Dir = repoRoot
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	libs := []string{
		ulid, ncruces, ncruces + "-wasm", "github.com/ncruces/julianday", "github.com/ncruces/wbt", "github.com/rivo/uniseg",
		"github.com/gowebpki/jcs", "github.com/shopspring/decimal", "github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/text",
	}
	never := []string{"builtin", "cli", "dashboard", "delivery/...", "store/memstore", "store/postgres", "weavertest"}
	for _, dep := range strings.Fields(string(out)) {
		name, ours := relative(dep)
		switch {
		case ours && allowed(never, name), !ours && !standard(dep) && !fromModule(libs, dep), dep == "os/exec", dep == "text/template":
			t.Errorf("a program in a browser links %s: leave it out with a build constraint, or name it here with the bytes that it adds to the download", dep)
		}
	}
}

// A program links the client of a service only if it imports its adapter or the command.
func TestClientsAreLinkedByTheirImportersOnly(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", ".", "./blob", "./blob/blobtest", "./blob/zstd", "./delivery", "./delivery/deliverytest",
		"./store/...", "./weavertest", "./httpapi/...", "./builtin", "./schema", "./ordertask")
	cmd.Dir = repoRoot
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	for adapter, client := range map[string]string{"blob/s3": "github.com/minio/minio-go/v7", "delivery/redis": "github.com/redis/rueidis"} {
		for _, dep := range deps {
			if fromModule([]string{client}, dep) {
				t.Errorf("%s is linked by a package that does not import %s", dep, adapter)
			}
		}
	}
}
