package httpapi

import (
	"time"

	"github.com/goweaver/weaver/httpapi/wire"
)

// RouteInfo is a row of the table of routes.
type RouteInfo struct {
	Method, Pattern, ID string
	Access              Access
	Public, Stream      bool
	Body                bool // it accepts a body
	Creates             bool // it creates something
	Headers             []string
}

// Routes returns the table of routes, for tests of all routes.
func (a *API) Routes() (list []RouteInfo) {
	for _, r := range a.routes() {
		info := RouteInfo{r.method, r.pattern, r.id, r.access, r.public, r.stream, r.body != nil, r.creates(), nil}
		for _, p := range r.params {
			if p.in == "header" {
				info.Headers = append(info.Headers, p.name)
			}
		}
		list = append(list, info)
	}
	return list
}

// ProblemInfo is a type of problem.
type ProblemInfo struct {
	Name, Title string
	Status      int
	Sentinel    error // nil for a problem of HTTP alone
}

// Problems returns all types of problems.
func Problems() (list []ProblemInfo) {
	for _, k := range httpProblems {
		list = append(list, ProblemInfo{k.Name, k.Title, k.Status, k.Sentinel})
	}
	for _, k := range wire.Kinds() {
		list = append(list, ProblemInfo{k.Name, k.Title, k.Status, k.Sentinel})
	}
	return list
}

// PasswordLine is NewPassword with few rounds.
func PasswordLine(name, access, password string, rounds int) string {
	line, err := newPassword(name, access, password, rounds)
	if err != nil {
		panic(err)
	}
	return line
}

// HoldLargeInputs takes the turns of all large inputs.
func (a *API) HoldLargeInputs() (release func()) {
	turns := a.types.turns.large
	for range cap(turns) {
		turns <- struct{}{}
	}
	return func() {
		for range cap(turns) {
			<-turns
		}
	}
}

// StopWithin is Stop with another grace period.
func (a *API) StopWithin(grace time.Duration) {
	a.grace = grace
	a.Stop()
}

// Rounds returns the number of password rounds derived.
func (p *Passwords) Rounds() int64 { return p.rounds.Load() }
