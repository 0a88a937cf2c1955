package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// A parameter or text of a body that stores do not accept as text is rejected with its name, on
// every route of the document.
func TestTextsAreChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{})
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Ref      string `json:"$ref"`
				Name, In string
			}
			RequestBody *struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			} `json:"requestBody"`
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Type   any
					Format string
					Enum   []any
				}
			}
		}
	}
	s.get("/openapi.json").into(&doc)
	params, bodies := 0, 0
	refuses := func(a *answer, name string) {
		var p struct {
			Errors []struct{ Parameter, Pointer string }
		}
		if a.status == http.StatusBadRequest {
			a.into(&p)
		}
		if len(p.Errors) != 1 || p.Errors[0].Parameter != name && p.Errors[0].Pointer != name {
			t.Errorf("%s: %d %s, want 400 with %q", a.asked, a.status, a.body, name)
		}
	}
	for path, methods := range doc.Paths {
		whole := func(name, value string) string {
			for {
				before, rest, found := strings.Cut(path, "{")
				if !found {
					return path
				}
				param, after, _ := strings.Cut(rest, "}")
				text := "01K00000000000000000000000"
				if param == name {
					text = value
				}
				path = before + text + after
			}
		}
		template := path
		for method, op := range methods {
			method = strings.ToUpper(method)
			if method == http.MethodHead {
				continue
			}
			ask := func(name, value, query string, headers ...string) *answer {
				path = template
				return s.do(method, whole(name, value)+query, nil, headers...)
			}
			for _, p := range op.Parameters {
				if p.Ref != "" {
					t.Fatalf("%s %s has the parameter %s", method, template, p.Ref)
				}
				for _, bad := range []string{"%00", "a%3D%00", "%ff"} {
					params++
					switch p.In {
					case "path":
						refuses(ask(p.Name, bad, ""), p.Name)
					case "query":
						refuses(ask("", "", "?"+p.Name+"="+bad), p.Name)
					case "header":
						if bad == "%ff" { // net/http sends no NUL
							refuses(ask("", "", "", p.Name, "\xff"), p.Name)
						}
					}
				}
			}
			if op.RequestBody == nil {
				continue
			}
			of := doc.Components.Schemas[strings.TrimPrefix(op.RequestBody.Content["application/json"].Schema.Ref, "#/components/schemas/")]
			for name, p := range of.Properties {
				if p.Type != "string" || p.Format != "" || len(p.Enum) > 0 {
					continue
				}
				bodies++
				path = template
				refuses(s.do(method, whole("", ""), `{"`+name+`":"a\u0000"}`), "#/"+name)
			}
		}
	}
	if params < 200 || bodies < 20 {
		t.Errorf("%d parameters and %d texts of bodies were tried: the document was not understood", params, bodies)
	}
}
