package archtest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// rule says what a package may import beside the standard library. Packages
// of ours are named from the root ("." is the root package); "x/..." means
// everything below x.
type rule struct {
	ours     []string
	libs     []string // modules of others
	testLibs []string // further modules, in its tests only
}

// The layers, from the bottom up. A package may import lower ones only.
var (
	words    = []string{"task", "task/event"}
	ports    = join(words, "decide", "store", "delivery", "blob", "order")
	adapters = []string{"store/memstore", "store/sqlite", "store/postgres", "delivery/redis", "delivery/kafka", "blob/s3"}
	plumbing = []string{"internal/group", "internal/batch", "internal/migrate", "internal/rules", "internal/propagate", "internal/lane", "internal/notify"}
	face     = join(ports, ".")
	doors    = join(face, "schema", "httpapi", "builtin", "ordertask")
	all      = join(join(doors, adapters...), "weavertest", "dashboard", "cli")
)

// Libraries, each with its reason in docs/adr/0009-dependencies.md.
const (
	ulid    = "github.com/oklog/ulid/v2"
	ncruces = "github.com/ncruces/go-sqlite3"
	xsys    = "golang.org/x/sys"
	kong    = "github.com/alecthomas/kong"
	xterm   = "golang.org/x/term"
)

// houseOrder is the import graph: one line per package, also for packages
// that are still to come.
var houseOrder = map[string]rule{
	"task":       {libs: []string{ulid}},
	"task/event": {ours: []string{"task"}},
	"decide":     {ours: words},
	"store":      {ours: words},
	"delivery":   {ours: words},
	"blob":       {ours: words},
	"order":      {ours: join(words, "internal/group")},

	// Conformance suites: their port and the standard library, so that users
	// who write an adapter can run them.
	"store/storetest":       {ours: join(words, "store")},
	"delivery/deliverytest": {ours: join(words, "delivery")},
	"blob/blobtest":         {ours: join(words, "blob")},
	"order/ordertest":       {ours: join(words, "order")},

	"store/memstore":            {ours: join(words, "store", "order", "internal/rules", "internal/notify")},
	"store/sqlite":              {ours: join(join(words, plumbing...), "store", "order"), libs: []string{ncruces, xsys}},
	"store/sqlite/internal/...": {ours: join(join(words, plumbing...), "store"), libs: []string{ncruces, xsys}},
	"store/postgres":            {ours: join(join(words, plumbing...), "store", "order"), libs: []string{"github.com/jackc/pgx/v5"}},
	"delivery/redis":            {ours: join(join(words, plumbing...), "delivery"), libs: []string{"github.com/redis/rueidis"}},
	"delivery/kafka":            {ours: join(join(words, plumbing...), "delivery"), libs: []string{"github.com/twmb/franz-go"}},
	"blob/s3":                   {ours: join(join(words, plumbing...), "blob"), libs: []string{"github.com/minio/minio-go/v7"}},

	"internal/group":      {},
	"internal/batch":      {ours: []string{"internal/group"}},
	"internal/migrate":    {ours: join(words, "store")},
	"internal/rules":      {ours: join(words, "store")},
	"internal/propagate":  {ours: join(words, "store", "internal/rules")},
	"internal/lane":       {ours: join(words, "store")},
	"internal/notify":     {ours: join(words, "store")},
	"internal/engine":     {ours: join(ports, "internal/group", "internal/batch")},
	"internal/faultstore": {ours: join(words, "store")},
	"internal/guards":     {},
	"internal/mutants":    {ours: []string{"internal/mutants/mutant"}},
	"internal/archtest":   {},
	"internal/disktest":   {libs: []string{ncruces}},

	"internal/mutants/mutant": {},

	"internal/systemtest": {},
	"internal/systemtest/...": {
		ours:     join(all, "internal/..."),
		testLibs: []string{"pgregory.net/rapid", "github.com/anishathalye/porcupine", "go.uber.org/goleak"},
	},
	"internal/clitest": {ours: join(all, "internal/..."), testLibs: []string{"github.com/rogpeppe/go-internal", "github.com/creack/pty"}},
	"internal/pipeline": {
		ours:     join(face, "builtin", "internal/text", "internal/typo"),
		libs:     []string{"github.com/goccy/go-yaml"},
		testLibs: []string{"github.com/santhosh-tekuri/jsonschema/v6"},
	},
	"internal/monitor": {ours: join(face, "internal/group", "internal/explain", "internal/text"), libs: []string{"github.com/rivo/uniseg", xterm}},
	"internal/explain": {ours: join(words, "store", "internal/text")},
	"internal/text":    {ours: words, libs: []string{"github.com/rivo/uniseg"}},
	"internal/typo":    {},
	"internal/webtest": {ours: join(all, "internal/..."), testLibs: []string{"github.com/chromedp/chromedp"}},

	".":            {ours: join(ports, "internal/engine", "internal/group"), libs: []string{ulid}},
	"weavertest":   {ours: join(face, "store/sqlite", "store/memstore")},
	"schema":       {ours: face, libs: []string{"github.com/invopop/jsonschema", "github.com/santhosh-tekuri/jsonschema/v6"}},
	"httpapi":      {ours: join(face, "schema", "internal/group"), libs: []string{"github.com/prometheus/client_golang"}},
	"builtin":      {ours: join(face, "internal/group"), libs: []string{xsys}},
	"ordertask":    {ours: face},
	"dashboard":    {ours: join(face, "schema", "httpapi")},
	"cli":          {ours: join(join(doors, adapters...), "dashboard", "internal/group", "internal/pipeline", "internal/monitor", "internal/explain", "internal/text", "internal/typo"), libs: []string{kong}},
	"cmd/...":      {ours: join(face, "cli", "builtin", "ordertask")},
	"browser":      {ours: join(join(doors, adapters...), "dashboard", "internal/group")},
	"examples/...": {ours: all},
}

func join(names []string, more ...string) []string { return slices.Concat(names, more) }

// ruleOf returns the rule for a package of ours.
func ruleOf(name string) (rule, bool) {
	if r, ok := houseOrder[name]; ok {
		return r, true
	}
	for pattern, r := range houseOrder {
		if matches(pattern, name) {
			return r, true
		}
	}
	return rule{}, false
}

// matches reports whether a name of the tables stands for a package.
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

func TestEveryPackageHasItsPlace(t *testing.T) {
	t.Parallel()
	for name := range packages(t) {
		if _, ok := ruleOf(name); !ok {
			t.Errorf("package %s has no place in the house: add a line with what it may import to houseOrder in internal/archtest/imports_test.go, "+
				"or move the code into a package that is there", name)
		}
	}
}

func TestImportGraph(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		r, ok := ruleOf(name)
		if !ok {
			continue // TestEveryPackageHasItsPlace reports it
		}
		for imported := range p.imports {
			dep, ours := relative(imported)
			switch {
			case standard(imported):
			case ours && !allowed(r.ours, dep):
				t.Errorf("%s imports %s, which is not below it: move what both need into a lower package, or pass it in; "+
					"if the design itself changed, write an ADR and change houseOrder", name, dep)
			case !ours && !fromModule(r.libs, imported):
				t.Errorf("%s imports %s: use the standard library, or give the library a line in docs/adr/0009-dependencies.md and in houseOrder", name, imported)
			}
		}
	}
}

// Users get the libraries of our tests into their go.sum, so these stay out
// of every package that they can import.
func TestTestsUseTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		r, _ := ruleOf(name)
		for imported := range p.testImports {
			_, ours := relative(imported)
			if !ours && !standard(imported) && !fromModule(join(r.libs, r.testLibs...), imported) {
				t.Errorf("the tests of %s import %s: write them with package testing alone, or put them into internal/systemtest (rapid, porcupine, goleak), "+
					"internal/clitest (testscript) or internal/webtest (chromedp)", name, imported)
			}
		}
	}
}

// The table says it for direct imports; this says it for everything linked.
func TestAdaptersStandApart(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		if !slices.Contains(adapters, name) {
			continue
		}
		for dep := range p.deps {
			if other, ours := relative(dep); ours && slices.Contains(adapters, other) {
				t.Errorf("adapter %s depends on adapter %s: move what both need into internal/ or their port", name, other)
			}
		}
	}
}

func TestOnlyTheTopImportsAdapters(t *testing.T) {
	t.Parallel()
	top := []string{"cli", "cmd/...", "examples/...", "browser", "weavertest", "internal/systemtest/...", "internal/clitest", "internal/webtest"}
	for name, p := range packages(t) {
		if allowed(top, name) || slices.Contains(adapters, name) {
			continue
		}
		for dep := range p.deps {
			if adapter, ours := relative(dep); ours && slices.Contains(adapters, adapter) {
				t.Errorf("%s depends on adapter %s: take the port's interface as an argument; only %s and tests compose adapters",
					name, adapter, strings.Join(top, ", "))
			}
		}
	}
}

// What a program links by importing weaver alone.
func TestRootIsLight(t *testing.T) {
	t.Parallel()
	root, ok := packages(t)["."]
	if !ok {
		t.Fatal("there is no root package: package weaver belongs at the top of the repository")
	}
	for _, dep := range slices.Sorted(maps.Keys(root.deps)) {
		if _, ours := relative(dep); !ours && !standard(dep) && !fromModule([]string{ulid}, dep) {
			t.Errorf("package weaver links %s: only %s and the standard library may come with it; move the code that needs it into an adapter or above", dep, ulid)
		}
	}
}
