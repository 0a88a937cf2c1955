package httpapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// route is one operation of the API. The table of them (routes) is what the handler
// serves and what the document says.
type route struct {
	method    string
	pattern   string // as http.ServeMux has it
	id        string // of the operation in the document
	summary   string
	access    Access // all of it is needed; 0 with public: nothing is
	more      string // access that some requests need beside it, for the document
	public    bool   // also without credentials
	params    []param
	body      reflect.Type // nil: it takes none
	maxBody   int64        // 0: Config.MaxBody
	maxValues int          // of the body's JSON; 0: Config.MaxValues
	maxDepth  int          // of the body's JSON; 0: maxDepth
	answers   []answer
	fails     []int // statuses of problems beside those that every route has
	stream    bool  // its answer has no end of its own: the limits of time are its own
	handle    func(*call) error
}

// answer is a success of a route.
type answer struct {
	status  int
	typ     reflect.Type // of the body; nil: it has none, or media says what it is
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

// query makes a parameter of the query.
func query(name, typ, summary string) param {
	return param{name: name, in: "query", typ: typ, summary: summary}
}

// repeated is a parameter that may come more than once.
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
		{status: http.StatusOK, typ: typ, summary: "It existed, or one that waits took the input.", headers: []string{"Location"}},
	}
}

// names returns the parameters that the route's pattern has.
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

// creates reports whether the route makes something new.
func (r *route) creates() bool {
	return slices.ContainsFunc(r.answers, func(a answer) bool { return a.status == http.StatusCreated })
}

// commonFails are the statuses of problems that any route may answer with.
func (r *route) statuses() []int {
	list := []int{400, 404, 405, 406, 414, 421, 500, 503}
	if !r.public {
		list = append(list, 401, 403, 429)
	}
	if len(r.names()) > 0 {
		list = append(list, 410) // what is looked for was dropped
	}
	if r.changes() {
		list = append(list, 403, 409, 412, 422, 507)
	}
	if r.body != nil {
		list = append(list, 408, 413, 415)
	}
	if strings.Contains(r.pattern, "{id}") {
		list = append(list, 410) // it was erased
	}
	list = append(list, r.fails...)
	slices.Sort(list)
	return slices.Compact(list)
}

// byPattern groups routes by path, for the answer to a wrong method.
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

// allowed lists the methods of a path, as the header Allow has them.
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
