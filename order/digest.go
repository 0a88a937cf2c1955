package order

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
)

// Digest returns "sha256:" and the hex SHA-256 of the canonical JSON (RFC 8785) of an
// object without the named top-level fields.
func Digest(raw json.RawMessage, without ...string) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	for _, name := range without {
		delete(fields, name)
	}
	plain, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	canonical, err := jcs.Transform(plain)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// ResultDigest returns the digest of a result without its times, references and latencies.
func ResultDigest(r *ExecResult) (string, error) {
	raw, err := json.Marshal(struct {
		Status      Status     `json:"status"`
		OrderID     string     `json:"order_id"`
		Instrument  string     `json:"instrument"`
		Side        Side       `json:"side"`
		ExecutedQty Decimal    `json:"executed_qty"`
		AvgPrice    *Decimal   `json:"avg_price"`
		Fills       []Fill     `json:"fills"`
		ReasonCode  ReasonCode `json:"reason_code"`
		Response    *Response  `json:"response,omitempty"`
	}{r.Status, r.OrderID, r.Instrument, r.Side, r.ExecutedQty, r.AvgPrice, r.Fills, r.ReasonCode, r.Response})
	if err != nil {
		return "", err
	}
	return Digest(raw)
}

// KeyHash is a key as logs and metrics show it: 16 hex digits of its SHA-256.
func KeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}
