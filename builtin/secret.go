package builtin

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkSecret checks whether the value of a variable can be used as a secret and
// masked. key is the input field with the variable. Its errors do not contain the
// value.
func checkSecret(key, name, value string, set bool) error {
	switch n := utf8.RuneCountInString(strings.TrimSpace(value)); {
	case !set:
		return fmt.Errorf("%s: the variable %s is not set where the worker runs: export it before the worker starts", key, name)
	case n == 0:
		return fmt.Errorf("%s: the variable %s is empty: give it a value where the worker runs", key, name)
	case n < minSecret:
		return fmt.Errorf("%s: the value of %s has fewer than %d characters, and masking it would mask everything: use a longer secret", key, name, minSecret)
	}
	return nil
}

// checkSecretName returns the problem with the name of a variable, or "".
func checkSecretName(name string) string {
	switch {
	case strings.Contains(name, "$"):
		return "write the name alone, without $"
	case strings.Contains(name, "*"):
		return "write each name: what a * would match is not known to be secret"
	case name == "" || strings.ContainsAny(name, "=\x00 \t\r\n"):
		return "write the name of an environment variable, such as API_TOKEN"
	}
	return ""
}

// lookup returns a variable from a file, the last of its name, or else from the
// worker.
func lookup(name string, file []variable) (value string, set bool) {
	value, set = os.LookupEnv(name)
	for _, v := range file {
		if v.name == name {
			value, set = v.value, true
		}
	}
	return value, set
}

// Unset returns the variables that are neither in the file ("" for no file) nor in
// the environment of this process. Another worker may have them.
func Unset(file string, names []string) ([]string, error) {
	var vars []variable
	if file != "" {
		var err error
		if vars, err = readEnvFile(file); err != nil {
			return nil, err
		}
	}
	var unset []string
	for _, name := range names {
		if _, set := lookup(name, vars); !set {
			unset = append(unset, name)
		}
	}
	return unset, nil
}

// Variables returns the names of the variables that HeadersEnv needs, sorted.
func (in *RequestInput) Variables() []string {
	var names []string
	for _, value := range in.HeadersEnv {
		_, name := headerVariable(value)
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
