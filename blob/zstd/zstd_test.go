package zstd_test

import (
	"crypto/rand"
	"io"
	"strings"
	"testing"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/blobtest"
	"github.com/goweaver/weaver/blob/zstd"
)

func TestConformance(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blobtest.Bucket {
		m := blob.NewMemory(zstd.Codec())
		return blobtest.Bucket{Bucket: m, Damage: func(key string) { m.Damage(key) }, InMemory: true}
	})
}

// Text is compressed, noise is stored unchanged, and bytes stored without a codec remain readable.
func TestCompressesWhenItPays(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 1<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a line of a log file, the same again and again\n", 20_000)
	dir := t.TempDir()
	b := blob.Dir(dir, zstd.Codec())
	for key, value := range map[string]string{"text": text, "noise": string(noise)} {
		if err := b.Put(t.Context(), key, strings.NewReader(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := blob.Dir(dir).Put(t.Context(), "plain", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	size := map[string]int64{}
	if err := b.List(t.Context(), "", func(i blob.Info) bool { size[i.Key] = i.Stored; return true }); err != nil {
		t.Fatal(err)
	}
	if size["text"] > int64(len(text)/10) {
		t.Errorf("text of %d bytes takes %d", len(text), size["text"])
	}
	if size["noise"] < 1<<20 || size["noise"] > 1<<20+100 {
		t.Errorf("noise of %d bytes takes %d", 1<<20, size["noise"])
	}
	r, err := b.Get(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != text || err != nil {
		t.Errorf("plain bytes: %d read, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
