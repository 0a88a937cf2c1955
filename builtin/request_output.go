package builtin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxBody is the maximum size read of a body, decompressed: an endless body costs
// this much traffic but no memory.
const maxBody = 10 << 20

// beginning keeps the first bytes of a body and counts all of them.
type beginning struct {
	room int // bytes to keep
	kept []byte
	n    int64
	more bool // bytes were dropped
}

// read reads a body up to limit.
func (b *beginning) read(resp *http.Response, limit int64) error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil // a protocol switch: no body follows
	}
	_, err := io.Copy(b, io.LimitReader(resp.Body, limit+1))
	if b.n > limit {
		b.n, b.more = limit, true
		b.kept = b.kept[:min(int64(len(b.kept)), limit)]
		b.kept = b.kept[:len(b.kept)-unfinished(b.kept)]
	}
	return err
}

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	b.n += int64(len(p))
	b.kept = append(b.kept, p[:min(len(p), b.room-len(b.kept))]...)
	return len(p), nil
}

// answer returns the output of a request that succeeded, of at most limit bytes as
// JSON. If even the status does not fit, the engine reports the limit.
func answer(resp *http.Response, body *beginning, limit int) (RequestOutput, error) {
	out := RequestOutput{
		Status:    resp.StatusCode,
		URL:       startOf(validText([]byte(withoutUser(resp.Request.URL))), limit/4),
		BodyBytes: body.n,
		Truncated: true, // for the size; corrected below
	}
	frame, err := json.Marshal(out)
	if err != nil {
		return out, fmt.Errorf("encode the answer: %w", err)
	}
	room := limit - len(frame) - len(`"headers":{},"body":"",`)
	var used int
	out.Headers, used = fittingHeaders(resp.Header, min(limit/4, room))
	whole := validText(body.kept)
	out.Body = startOf(whole, room-used)
	out.Truncated = body.more || body.n > int64(len(body.kept)) || len(out.Body) < len(whole)
	return out, nil
}

// fittingHeaders returns the headers that fit into room bytes of JSON, the most
// used ones first, and their size. It never cuts a value.
func fittingHeaders(h http.Header, room int) (fit map[string]string, used int) {
	wanted := func(name string) int { return slices.Index([]string{"Etag", "Location", "Content-Type"}, name) }
	names := slices.SortedFunc(maps.Keys(h), func(a, b string) int {
		return cmp.Or(cmp.Compare(wanted(b), wanted(a)), strings.Compare(a, b))
	})
	fit = make(map[string]string)
	for _, name := range names {
		value := validText([]byte(strings.Join(h[name], ", ")))
		size := encodedLen(name) + encodedLen(value) + len(`"":"",`)
		if size > room-used {
			continue
		}
		fit[name] = value
		used += size
	}
	return fit, used
}

// startOf returns the longest prefix of s of at most size bytes as JSON.
func startOf(s string, size int) string {
	at := 0
	for at < len(s) {
		r, n := utf8.DecodeRuneInString(s[at:])
		if size -= runeLen(r, n); size < 0 {
			break
		}
		at += n
	}
	return s[:at]
}
