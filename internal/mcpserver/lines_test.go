package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/mcpserver"
)

// A malformed line is answered, and the session continues.
func TestServe_AnswersLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	s, err := mcpserver.New(c)
	if err != nil {
		t.Fatal(err)
	}
	lines := []struct {
		in   string
		code int // 0 expects no answer
		id   string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, 1, "1"},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0, ""},
		{`help`, -32700, "null"},
		{`{"jsonrpc":"2.0","id":2,"method":"ping"`, -32700, "null"},
		{"\r", 0, ""},
		{`[]`, -32600, "null"},
		{`[{"jsonrpc":"2.0","id":3,"method":"ping"}]`, -32600, "null"},
		{`42`, -32600, "null"},
		{`{"id":4}`, -32600, "4"},
		{`{"jsonrpc":"1.0","id":"five","method":"ping"}`, -32600, `"five"`},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":6,"method":7}`, -32600, "6"},
		{`"` + strings.Repeat("x", 9<<20) + `"`, -32600, "null"},
		{"{\"a\":\"\xff\"} x", -32700, "null"},
		{`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"counts","arguments":{}}}`, 1, "8"},
	}
	in, write := io.Pipe()
	answers, out := io.Pipe()
	want := map[string][]int{}
	var sent strings.Builder
	expected := 0
	for _, l := range lines {
		sent.WriteString(l.in + "\n")
		if l.code != 0 {
			want[l.id] = append(want[l.id], l.code)
			expected++
		}
	}
	go func() { _, _ = io.WriteString(write, sent.String()) }()
	go func() { _ = out.CloseWithError(mcpserver.Serve(t.Context(), s, in, out)) }()
	read := bufio.NewReader(answers)
	for range expected {
		line, err := read.ReadString('\n')
		if err != nil {
			t.Fatalf("the session ended: %v; want answers %v", err, want)
		}
		var got struct {
			ID    json.RawMessage `json:"id"`
			Error *struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		code := 1
		if got.Error != nil {
			code = got.Error.Code
		}
		left := want[string(got.ID)]
		if len(left) == 0 || left[0] != code {
			t.Errorf("the answer %.200s was not expected: want %v", line, left)
			continue
		}
		want[string(got.ID)] = left[1:]
	}
	_ = write.Close()
}
