package httpcontract

import (
	"bytes"
	_ "embed" // the schema of documents
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed metaschema/openapi-3.1.json
var metaschema []byte

// Valid reports errors of a document. It checks the official schema of OpenAPI 3.1 documents. In addition, each
// schema must be valid JSON Schema 2020-12 with resolvable references, and operation IDs must be unique. The
// parameters of a path must be those that its operations declare.
func Valid(document []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("the document is not JSON: %w", err)
	}
	meta, err := jsonschema.UnmarshalJSON(bytes.NewReader(metaschema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weaver:///openapi-3.1.json", meta); err != nil {
		return err
	}
	s, err := c.Compile("weaver:///openapi-3.1.json")
	if err != nil {
		return fmt.Errorf("the schema of documents: %w", err)
	}
	if err := s.Validate(doc); err != nil {
		return err
	}
	contract, err := Read(document)
	if err != nil {
		return err
	}
	return errors.Join(contract.checkSchemas(contract.doc, "#"), contract.checkOperations())
}

// checkSchemas compiles every schema of the document.
func (c *Contract) checkSchemas(v any, at string) error {
	var problems []error
	switch v := v.(type) {
	case node:
		for key, below := range v {
			here := at + "/" + pointerEscaper.Replace(key)
			if key == "schema" || at == "#/components/schemas" {
				if _, err := c.compiler.Compile(base + here); err != nil {
					problems = append(problems, fmt.Errorf("%s: %w", here, err))
				}
				continue
			}
			problems = append(problems, c.checkSchemas(below, here))
		}
	case []any:
		for i, below := range v {
			problems = append(problems, c.checkSchemas(below, fmt.Sprintf("%s/%d", at, i)))
		}
	}
	return errors.Join(problems...)
}

// checkOperations checks the IDs and parameters of operations.
func (c *Contract) checkOperations() error {
	var problems []error
	ids := c.Operations()
	if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) {
		problems = append(problems, fmt.Errorf("two operations have one id: %v", ids))
	}
	for path := range object(c.doc, "paths") {
		for method, op := range object(c.doc, "paths", path) {
			o, _ := op.(node)
			params, _ := o["parameters"].([]any)
			var names []string
			for _, p := range params {
				if n, _ := p.(node); text(n, "in") == "path" {
					names = append(names, text(n, "name"))
				}
			}
			if want := inPath(path); !slices.Equal(names, want) {
				problems = append(problems, fmt.Errorf("%s %s declares the parameters %v, and its path has %v", method, path, names, want))
			}
		}
	}
	return errors.Join(problems...)
}

// inPath lists the parameters of a path.
func inPath(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}
