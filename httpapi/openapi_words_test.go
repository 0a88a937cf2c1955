package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

var update = flag.Bool("update", false, "write openapi_words.json anew")

// The document contains the comments of types and fields from the source.
func TestFieldComments(t *testing.T) {
	d := describer{schemas: make(map[string]node), names: make(map[reflect.Type]string)}
	routes := testAPI(t, memstore.New(), func(cfg *Config) {
		cfg.Orders = &OrderConfig{Store: memstore.New(), Orders: order.Orders{}, Webhooks: order.Webhooks{}}
	}).routes()
	for i := range routes {
		d.operation(&routes[i], d.of(typeOf[Problem]()))
	}
	words := make(map[string]string)
	read := make(map[string]map[string]string) // by package
	note := func(typ reflect.Type, field string) {
		pkg := typ.PkgPath()
		if read[pkg] == nil {
			read[pkg] = commentsIn(t, pkg)
		}
		if key := commentKey(typ, field); read[pkg][key] != "" {
			words[key] = read[pkg][key]
		}
	}
	for typ := range d.names {
		note(typ, "")
		for _, f := range jsonfields.Of(typ) {
			note(f.Struct, f.GoName)
		}
	}
	got, err := json.MarshalIndent(words, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("openapi_words.json", got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile("openapi_words.json"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("openapi_words.json does not say what the source says: go test ./httpapi -run %s -update (%v)", t.Name(), err)
	}
}

var docLink = regexp.MustCompile(`\[([A-Za-z.]+)\]`)

// commentsIn returns the comments of the fields of a package's structs.
func commentsIn(t *testing.T, pkg string) map[string]string {
	t.Helper()
	const module = "github.com/goweaver/weaver"
	files, err := filepath.Glob(filepath.Join("..", strings.TrimPrefix(pkg, module), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	comments := make(map[string]string)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if types, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range types.Specs {
					typeComments(comments, filepath.Base(pkg), types, spec)
				}
			}
		}
	}
	return comments
}

// typeComments adds the comments of a struct type and its fields.
func typeComments(to map[string]string, pkg string, decl *ast.GenDecl, spec ast.Spec) {
	typ, ok := spec.(*ast.TypeSpec)
	if !ok {
		return
	}
	fields, ok := typ.Type.(*ast.StructType)
	if !ok {
		return
	}
	add := func(key, own string, comments ...*ast.CommentGroup) {
		for _, c := range comments {
			text := strings.Join(strings.Fields(c.Text()), " ")
			text = strings.TrimPrefix(docLink.ReplaceAllString(text, "$1"), own)
			if text != "" {
				to[key] = text
				return
			}
		}
	}
	key := pkg + "." + typ.Name.Name
	if typ.Name.IsExported() {
		add(key, "", typ.Doc, decl.Doc)
	}
	for _, f := range fields.Fields.List {
		for _, name := range f.Names {
			add(key+"."+name.Name, name.Name+": ", f.Doc, f.Comment)
		}
	}
}
