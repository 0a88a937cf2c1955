package task_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/task"
)

// validTypeName implements the grammar of type names independently, without a regular expression.
func validTypeName(name string) bool {
	among := func(text, allowed string) bool {
		return text != "" && strings.Trim(text, allowed) == ""
	}
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
	parts := strings.Split(name, ".")
	if len(parts) != 4 || len(name) > 255 || !among(parts[0][:min(1, len(parts[0]))], letters) {
		return false
	}
	for _, part := range parts[:3] {
		if !among(part, letters+digits+"_") {
			return false
		}
	}
	version, found := strings.CutPrefix(parts[3], "v")
	return found && among(version, digits) && version[0] != '0'
}

// A name is accepted exactly if it has the required form. A refusal is one short line with the required form or the
// maximum length.
func FuzzTypeName(f *testing.F) {
	for _, name := range []string{
		"acme.billing.charge.v1", "a.b.c.v10", "a_1.2.3_.v999", "", "sync-users", "acme.billing.charge", "acme.billing.charge.v0", "acme.billing.charge.v01",
		"Acme.billing.charge.v1", "1acme.billing.charge.v1", "_a.b.c.v1", "acme..charge.v1", "a.b.c.d.v1", "a.b.c.v1 ", "a.b.c.v1\n", "a.b.c.v", "a.b.c.1", "a.b.c.V1",
		"a.b.c.v1\x00", "\xff.b.c.v1", "ａ.b.c.v1", "a.b.c.v١", "....", "a.b.c.v1.", strings.Repeat("a", 249) + ".b.c.v1", strings.Repeat("a", 250) + ".b.c.v1", "a.b.c.v" + strings.Repeat("9", 300),
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := task.CheckTypeName(name)
		if want := validTypeName(name); (err == nil) != want {
			t.Fatalf("%q: %v, and by the grammar it is %v", name, err, want)
		}
		if err == nil {
			return
		}
		text := err.Error()
		if len(text) > 2000 || strings.ContainsAny(text, "\n\x00") {
			t.Errorf("%q: no short line: %q", name, text)
		}
		if want := "acme.billing.charge.v1"; len(name) <= task.MaxTypeName && !strings.Contains(text, want) {
			t.Errorf("%q: the error gives no example: %s", name, text)
		}
		if want := "at most 255"; len(name) > task.MaxTypeName && !strings.Contains(text, want) {
			t.Errorf("%d bytes: the error does not name the limit: %s", len(name), text)
		}
	})
}

// Every text is refused or parses to one ID, and the ID's text parses to the same ID. IDs sort as their texts do.
func FuzzID(f *testing.F) {
	for _, text := range []string{
		"", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav", "00000000000000000000000000", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "80000000000000000000000000",
		"01ARZ3NDEKTSV4RRFFQ69G5FA", "01ARZ3NDEKTSV4RRFFQ69G5FAVV", "01ARZ3NDEKTSV4RRFFQ69G5FAI", "01ARZ3NDEKTSV4RRFFQ69G5FA\x00", "01ARZ3NDEKTSV4RRFFQ69G5F\xff\xff", "01ARZ3NDEKTSV4RRFFQ69G5é",
	} {
		f.Add(text, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	}
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford base32
	f.Fuzz(func(t *testing.T, a, b string) {
		var ids []task.ID
		for _, text := range []string{a, b} {
			upper := strings.ToUpper(text)
			want := len(text) == 26 && len(upper) == 26 && strings.Trim(upper, alphabet) == "" && text[0] <= '7'
			id, err := task.ParseID(text)
			if (err == nil) != want {
				t.Fatalf("%q: %v, and by the alphabet it is %v", text, err, want)
			}
			var read task.ID
			jerr := json.Unmarshal(quoted(t, text), &read)
			if (jerr == nil) != (want || text == "") || read != id {
				t.Errorf("%q is %v, and from JSON it is %v, %v", text, id, read, jerr)
			}
			if err != nil {
				continue
			}
			if back := id.String(); back != upper && !(id.IsZero() && back == "") {
				t.Errorf("%q comes back as %q", text, back)
			}
			ids = append(ids, id)
		}
		if len(ids) == 2 {
			if got, want := ids[0].Compare(ids[1]), strings.Compare(strings.ToUpper(a), strings.ToUpper(b)); got != want {
				t.Errorf("%q and %q compare as %d, their texts as %d", a, b, got, want)
			}
		}
	})
}

func quoted(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Each byte is an edge between two of sixteen nodes. FindCycle returns a real cycle exactly if one exists.
func FuzzFindCycle(f *testing.F) {
	for _, edges := range []string{"", "\x00", "\x01\x12\x23", "\x01\x12\x20", "\x01\x02\x13\x23", "\xff", "\xab\xba", "\x01\x12\x23\x34\x45\x56\x67\x78\x89\x9a\xab\xbc\xcd\xde\xef\xf0"} {
		f.Add([]byte(edges))
	}
	f.Fuzz(func(t *testing.T, edges []byte) {
		node := func(n byte) string { return string('a' + rune(n)) }
		var order []string
		needs := make(map[string][]string)
		for n := range byte(16) {
			order = append(order, node(n))
		}
		for _, e := range edges {
			needs[node(e>>4)] = append(needs[node(e>>4)], node(e&15))
		}
		cycle := task.FindCycle(order, needs)
		if cyclic := !sortable(order, needs); cyclic != (cycle != nil) {
			t.Fatalf("found %v in %v", cycle, needs)
		}
		if cycle == nil {
			return
		}
		if len(cycle) < 2 || cycle[0] != cycle[len(cycle)-1] {
			t.Errorf("%v does not close", cycle)
		}
		for i := range len(cycle) - 1 {
			if !slices.Contains(needs[cycle[i]], cycle[i+1]) {
				t.Errorf("%v: %s does not need %s", cycle, cycle[i], cycle[i+1])
			}
		}
	})
}

// sortable removes nodes without needs until no node is left or no node can be removed.
func sortable(order []string, needs map[string][]string) bool {
	left := slices.Clone(order)
	for {
		free := func(n string) bool {
			return !slices.ContainsFunc(needs[n], func(other string) bool { return slices.Contains(left, other) })
		}
		before := len(left)
		var stay []string
		for _, n := range left {
			if !free(n) {
				stay = append(stay, n)
			}
		}
		if left = stay; len(left) == before {
			return before == 0
		}
	}
}
