package httpapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// route is one operation of the API. The table of routes defines the handler and the document.
type route struct {
	method    string
	pattern   string // in the format of http.ServeMux
	id        string // operation ID in the document
	summary   string
	access    Access // all of it is required; with public 0 means no access
	more      string // additional access that some requests need, for the document
	public    bool   // credentials are optional
	params    []param
	body      reflect.Type // nil without a body
	maxBody   int64        // 0: Config.MaxBody
	maxValues int          // of the body's JSON; 0: Config.MaxValues
	maxDepth  int          // of the body's JSON; 0: maxDepth
	answers   []answer
	fails     []int // statuses of problems in addition to those of every route
	ownKey    bool  // it checks the header Idempotency-Key itself
	stream    bool  // the response has no end of its own, and its own time limits
	handle    func(*call) error
}

// answer is a successful response of a route.
type answer struct {
	status  int
	typ     reflect.Type // of the body; nil without a body, or if media describes it
	also    reflect.Type // a second type of the body; optional
	media   string       // "": application/json
	headers []string
	summary string
}

// param is a parameter of a route.
type param struct {
	name    string
	in      string // path, query or header
	typ     string // string, integer, boolean, or date-time
	many    bool   // it may be repeated
	summary string
}

// query returns a query parameter.
func query(name, typ, summary string) param {
	return param{name: name, in: "query", typ: typ, summary: summary}
}

// repeated returns the parameter as one that may be repeated.
func (p param) repeated() param {
	p.many = true
	return p
}

func ok[T any](summary string, headers ...string) []answer {
	return []answer{{status: http.StatusOK, typ: reflect.TypeFor[T](), summary: summary, headers: headers}}
}

func created[T any](summary string) []answer {
	typ := reflect.TypeFor[T]()
	return []answer{
		{status: http.StatusCreated, typ: typ, summary: summary, headers: []string{"Location"}},
		{status: http.StatusOK, typ: typ, summary: "It already existed, or a waiting one took the input.", headers: []string{"Location"}},
	}
}

// names returns the path parameters of the route's pattern.
func (r *route) names() (names []string) {
	for part := range strings.SplitSeq(r.pattern, "/") {
		if name, isParam := strings.CutPrefix(part, "{"); isParam {
			names = append(names, strings.TrimRight(name, ".}"))
		}
	}
	return names
}

// changes reports whether the route changes anything.
func (r *route) changes() bool { return r.method != http.MethodGet }

// creates reports whether the route creates something.
func (r *route) creates() bool {
	return slices.ContainsFunc(r.answers, func(a answer) bool { return a.status == http.StatusCreated })
}

// statuses returns the statuses of problems that the route may return.
func (r *route) statuses() []int {
	list := []int{400, 404, 405, 406, 414, 421, 500, 503}
	if !r.public {
		list = append(list, 401, 403, 429)
	}
	if len(r.names()) > 0 {
		list = append(list, 410) // the item may have been dropped
	}
	if r.changes() {
		list = append(list, 403, 409, 412, 422, 507)
	}
	if r.body != nil {
		list = append(list, 408, 413, 415)
	}
	if strings.Contains(r.pattern, "{id}") {
		list = append(list, 410) // the values may have been erased
	}
	list = append(list, r.fails...)
	slices.Sort(list)
	return slices.Compact(list)
}

// byPattern groups routes by path, for the response to a wrong method.
func byPattern(routes []route) map[string]map[string]*route {
	m := make(map[string]map[string]*route)
	for i := range routes {
		r := &routes[i]
		if m[r.pattern] == nil {
			m[r.pattern] = make(map[string]*route)
		}
		m[r.pattern][r.method] = r
	}
	return m
}

// allowed lists the methods of a path in the format of the header Allow.
func allowed(methods map[string]*route) string {
	var list []string
	for m, r := range methods {
		list = append(list, m)
		if m == http.MethodGet && !r.stream {
			list = append(list, http.MethodHead)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
