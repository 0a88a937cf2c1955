package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// document returns the OpenAPI 3.1 document of the routes.
func document(routes []route) ([]byte, error) {
	d := describer{schemas: make(map[string]node), names: make(map[reflect.Type]string)}
	problem := d.of(typeOf[Problem]())
	paths := make(map[string]node)
	for i := range routes {
		r := &routes[i]
		at := paths[r.pattern]
		if at == nil {
			at = make(node)
			paths[r.pattern] = at
		}
		at[strings.ToLower(r.method)] = d.operation(r, problem)
	}
	doc := node{
		"openapi": "3.1.0",
		"info": node{
			"title": "Weaver", "version": "1",
			"summary":     "Durable tasks over HTTP.",
			"description": "Values of tasks are shown with the access `payloads` only, and masked as the tasks say. Responses without success are problem details (RFC 9457). Later versions may add properties to responses: ignore unknown ones.",
			"license":     node{"name": "MIT", "identifier": "MIT"},
		},
		"servers": []any{node{"url": "."}},
		"paths":   paths,
		"components": node{
			"schemas": d.schemas,
			"securitySchemes": node{
				"token":    node{"type": "http", "scheme": "bearer"},
				"password": node{"type": "http", "scheme": "basic"},
				"cookie":   node{"type": "apiKey", "in": "cookie", "name": cookieName},
			},
		},
	}
	return json.MarshalIndent(doc, "", " ")
}

// operation documents one route.
func (d *describer) operation(r *route, problem node) node {
	op := node{"operationId": r.id, "summary": r.summary}
	if !r.public {
		op["security"] = []any{node{"token": []any{}}, node{"password": []any{}}, node{"cookie": []any{}}}
		op["description"] = "Access: " + r.access.String() + "."
		if r.more != "" {
			op["description"] = "Access: " + r.access.String() + "; " + r.more + "."
		}
	}
	var params []any
	for _, name := range r.names() {
		params = append(params, node{"name": name, "in": "path", "required": true, "schema": node{"type": "string"}})
	}
	for _, p := range r.params {
		params = append(params, d.parameter(&p))
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.body != nil {
		op["requestBody"] = node{"content": node{"application/json": node{"schema": d.of(r.body)}}}
	}
	responses := make(node)
	for _, a := range r.answers {
		content := node{"description": a.summary}
		if a.typ != nil || a.media != "" {
			media := node{}
			if a.typ != nil {
				media["schema"] = d.of(a.typ)
			}
			if a.also != nil {
				media["schema"] = node{"anyOf": []any{d.of(a.typ), d.of(a.also)}}
			}
			content["content"] = node{a.mediaType(): media}
		}
		if len(a.headers) > 0 {
			headers := make(node)
			for _, h := range a.headers {
				headers[h] = node{"schema": node{"type": "string"}}
			}
			content["headers"] = headers
		}
		responses[strconv.Itoa(a.status)] = content
	}
	for _, status := range r.statuses() {
		failure := node{
			"description": http.StatusText(status),
			"content":     node{"application/problem+json": node{"schema": problem}},
		}
		if header, summary := problemHeader(status); header != "" {
			failure["headers"] = node{header: node{"description": summary, "schema": node{"type": "string"}}}
		}
		responses[strconv.Itoa(status)] = withAnswer(failure, responses[strconv.Itoa(status)])
	}
	op["responses"] = responses
	return op
}

// withAnswer adds an answer of the same status, which says more of it, to a problem.
func withAnswer(problem node, given any) node {
	answer, has := given.(node)
	if !has {
		return problem
	}
	problem["description"] = answer["description"]
	bodies, _ := problem["content"].(node)
	own, _ := answer["content"].(node)
	maps.Copy(bodies, own)
	return problem
}

// problemHeader returns the header of problems with a status, and its description.
func problemHeader(status int) (name, summary string) {
	switch status {
	case http.StatusUnauthorized:
		return "WWW-Authenticate", "How to send credentials."
	case http.StatusMethodNotAllowed:
		return "Allow", "The methods of the path."
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		return "Retry-After", "Seconds until a retry; left out if a retry would not help."
	}
	return "", ""
}

func (d *describer) parameter(p *param) node {
	s := node{"type": p.typ}
	if p.typ == "date-time" {
		s = node{"type": "string", "format": p.typ}
	}
	if p.many {
		s = node{"type": "array", "items": s}
	}
	return node{"name": p.name, "in": p.in, "description": p.summary, "schema": s}
}
