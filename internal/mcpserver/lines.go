package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Error codes of JSON-RPC.
const (
	codeParse   = -32700
	codeInvalid = -32600
)

// messages passes on the lines of a stream that are JSON-RPC messages and answers the others itself, so that one
// malformed line does not end the session.
type messages struct {
	in  *bufio.Reader
	out io.Writer

	line []byte // unread rest of the current message
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.line) == 0 {
		line, err := m.next()
		if len(bytes.TrimSpace(line)) > 0 {
			code, wrong := check(line)
			switch {
			case wrong == nil:
				m.line = append(bytes.TrimSpace(line), '\n')
			default:
				if err := m.refuse(line, code, wrong); err != nil {
					return 0, err
				}
			}
		}
		if err != nil && len(m.line) == 0 {
			return 0, err
		}
	}
	n := copy(p, m.line)
	m.line = m.line[n:]
	return n, nil
}

// next reads a line and keeps at most maxBody+1 bytes of it.
func (m *messages) next() (line []byte, err error) {
	for {
		part, err := m.in.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxBody+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// check returns the error code and the error of a malformed line.
func check(line []byte) (code int, wrong error) {
	if len(line) > maxBody {
		return codeInvalid, fmt.Errorf("the line has more than %d bytes", maxBody)
	}
	if !json.Valid(line) {
		return codeParse, errors.New("the line is not JSON: write one JSON-RPC message per line, as MCP requires. `weaver mcp` is meant to be started by an MCP client")
	}
	if bytes.TrimSpace(line)[0] != '{' {
		return codeInvalid, errors.New("the line is not a JSON-RPC message: want one object, not a batch")
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return codeInvalid, fmt.Errorf("the line is not a JSON-RPC message: %w", err)
	}
	return 0, nil
}

// refuse answers a malformed line, with its ID if that can be read.
func (m *messages) refuse(line []byte, code int, wrong error) error {
	var of struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &of) != nil || len(of.ID) == 0 || of.ID[0] == '{' || of.ID[0] == '[' || len(of.ID) > 1000 {
		of.ID = json.RawMessage("null")
	}
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   failure         `json:"error"`
	}{"2.0", of.ID, failure{code, wrong.Error()}})
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	_, err = m.out.Write(append(answer, '\n'))
	return err
}

// locked is a writer that several goroutines use for whole messages. Close does not close the underlying stream.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Close implements io.Closer.
func (*locked) Close() error { return nil }
