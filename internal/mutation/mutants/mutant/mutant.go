// Package mutant holds the switches that `make mutants` weaves into a copy of the
// tested code. One test binary contains all mutants of a package. The environment
// variable [Active] selects the active one, so that a mutant costs a test run
// without a compilation.
//
// With [Reached] set, no mutant is active: every evaluated switch appends its
// number to that file, once per process. A test that does not reach a mutant's
// switch cannot fail because of it, and does not run for it.
//
// No package imports this one, except in the overlay.
package mutant

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

// The environment variables read at the start of a process.
const (
	Active  = "WEAVER_MUTANT"         // number of the active mutant
	Reached = "WEAVER_MUTANT_REACHED" // file for the numbers of reached switches
)

var (
	active, _ = strconv.Atoi(os.Getenv(Active)) // 0, no mutant, if unset
	reached   = os.Getenv(Reached)
	noted     [1 << 14]atomic.Bool
)

// On reports whether the mutant is active in this process.
func On(id int) bool {
	if reached != "" {
		note(id)
	}
	return id == active
}

// note writes at once, because tests kill their own process.
func note(id int) {
	if noted[id].Swap(true) {
		return
	}
	file, err := os.OpenFile(reached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = file.Close() }() // only the write below matters
	if _, err := fmt.Fprintln(file, id); err != nil {
		panic(err)
	}
}

// Number is the constraint of the arithmetic switches.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// pick returns b if the mutant is active, else a.
func pick[T any](id int, a, b T) T {
	if On(id) {
		return b
	}
	return a
}

// Not negates a condition.
func Not(id int, cond bool) bool { return On(id) != cond }

// Force replaces the value of a condition after evaluating it.
func Force(id int, to, cond bool) bool { return pick(id, cond, to) }

// And turns && into ||.
func And(id int, a bool, b func() bool) bool {
	if On(id) {
		return a || b()
	}
	return a && b()
}

// Or turns || into &&.
func Or(id int, a bool, b func() bool) bool {
	if On(id) {
		return a && b()
	}
	return a || b()
}

// Less turns < into <=.
func Less[T cmp.Ordered](id int, a, b T) bool { return pick(id, a < b, a <= b) }

// LessEqual turns <= into <.
func LessEqual[T cmp.Ordered](id int, a, b T) bool { return pick(id, a <= b, a < b) }

// Greater turns > into >=.
func Greater[T cmp.Ordered](id int, a, b T) bool { return pick(id, a > b, a >= b) }

// GreaterEqual turns >= into >.
func GreaterEqual[T cmp.Ordered](id int, a, b T) bool { return pick(id, a >= b, a > b) }

// Add turns + into -.
func Add[T Number](id int, a, b T) T { return pick(id, a+b, a-b) }

// Sub turns - into +.
func Sub[T Number](id int, a, b T) T { return pick(id, a-b, a+b) }

// Mul turns * into +.
func Mul[T Number](id int, a, b T) T { return pick(id, a*b, a+b) }

// Div turns / into *.
func Div[T Number](id int, a, b T) T {
	if On(id) {
		return a * b
	}
	return a / b
}

// Plus adds one to a constant.
func Plus[T Number](id int, v T) T { return pick(id, v, v+1) }

// Text replaces a text.
func Text(id int, text, mutated string) string { return pick(id, text, mutated) }

// Use notes the use of a package variable whose value depends on mutants: the
// variable's own switch is evaluated at the start of every test process.
func Use[T any](v T, ids ...int) T {
	if reached != "" {
		for _, id := range ids {
			note(id)
		}
	}
	return v
}

// Var is [Text] for the values of package variables: it does not note the
// evaluation.
func Var(id int, text, mutated string) string {
	if id == active {
		return mutated
	}
	return text
}
