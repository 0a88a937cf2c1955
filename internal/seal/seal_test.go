package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/task"
)

func TestValue(t *testing.T) {
	t.Parallel()
	k := keys(t, "k1", "k2")
	s := sealer(t, k[0])
	ids := task.NewIDs(nil)
	one, two := ids.New(), ids.New()
	output := func(id task.ID) seal.Place { return seal.Place{Task: id, Kind: seal.Output} }
	value := json.RawMessage(`{"secret":"<&>é"}`)

	sealed, err := s.Seal(output(one), value)
	if err != nil {
		t.Fatal(err)
	}
	if !task.IsSealed(sealed) || !json.Valid(sealed) || bytes.Contains(sealed, []byte("secret")) {
		t.Fatalf("sealed: %s", sealed)
	}
	if kept, ok := task.SealedOf(sealed); !ok || kept.Key != "k1" || kept.Of != one || kept.Size != len(value) {
		t.Errorf("SealedOf = %+v, %v", kept, ok)
	}
	if got := s.Open(output(one), sealed); !bytes.Equal(got, value) {
		t.Errorf("Open = %s", got)
	}
	if got := s.Open(output(one), value); !bytes.Equal(got, value) {
		t.Errorf("Open of a value that is not sealed = %s", got)
	}

	other := &seal.Sealer{Codec: s.Codec, Namespace: "other"}
	flipped := bytes.Replace(sealed, []byte(`"v":"`), []byte(`"v":"AAAA`), 1)
	for name, c := range map[string]struct {
		s     *seal.Sealer
		place seal.Place
		value json.RawMessage
		want  error
	}{
		"of another task":            {s, output(two), sealed, codec.ErrChanged},
		"of another kind":            {s, seal.Place{Task: one, Kind: seal.Unblock}, sealed, codec.ErrChanged},
		"of another namespace":       {other, output(one), sealed, codec.ErrChanged},
		"said to be of another task": {s, output(two), bytes.Replace(sealed, []byte(one.String()), []byte(two.String()), 1), codec.ErrChanged},
		"with other bytes":           {s, output(one), flipped, codec.ErrChanged},
		"cut":                        {s, output(one), sealed[:len(sealed)-9], codec.ErrChanged},
		"with another key":           {sealer(t, keys(t, "k1")...), output(one), sealed, codec.ErrChanged},
		"with a missing key":         {sealer(t, k[1]), output(one), sealed, codec.ErrNoKey},
	} {
		got := c.s.Open(c.place, c.value)
		err := seal.Failure(got)
		if !errors.Is(err, c.want) || !seal.Lasting(err) {
			t.Errorf("%s: %s: %v, want %v", name, got, err, c.want)
		}
		if again, err := c.s.Seal(c.place, got); err == nil {
			t.Errorf("%s: what could not be opened was sealed: %s", name, again)
		}
	}
	err = seal.Failure(sealed)
	if !errors.Is(err, codec.ErrNoCodec) || !strings.Contains(err.Error(), `"k1"`) || !strings.Contains(err.Error(), "Config.Codec") {
		t.Errorf("without a codec: %v", err)
	}
	if err := seal.Failure(value); err != nil {
		t.Errorf("of a value that is not sealed: %v", err)
	}
}

// A step that a repeated task took over, and an input that another task took over, are opened
// there; a step with another name is not.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	s := sealer(t, keys(t, "k1")...)
	ids := task.NewIDs(nil)
	one, two := ids.New(), ids.New()
	step := &task.Step{Name: "a", Kind: task.KindStep}
	sealed, err := s.Seal(seal.StepOf(one, step), json.RawMessage(`1`))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Open(seal.StepOf(two, step), sealed); string(got) != "1" {
		t.Errorf("taken over: %s", got)
	}
	if got := s.Open(seal.StepOf(one, &task.Step{Name: "b", Kind: task.KindStep}), sealed); seal.Failure(got) == nil {
		t.Errorf("under another name: %s", got)
	}
}

type broken struct {
	codec.Codec
	err error
	id  string
}

func (b broken) Seal(plain, place []byte) (codec.Sealed, error) {
	return codec.Sealed{Key: b.id, Bytes: plain}, b.err
}
func (b broken) Open(codec.Sealed, []byte) ([]byte, error) { return nil, b.err }

// A temporary failure of a codec is an error, and no value is stored unsealed.
func TestCodecFails(t *testing.T) {
	t.Parallel()
	away := errors.New("the key service is away")
	good := sealer(t, keys(t, "k1")...)
	s := &seal.Sealer{Codec: broken{good.Codec, away, "k1"}, Namespace: ns}
	place := seal.Place{Task: task.NewIDs(nil).New(), Kind: seal.Output}
	if got, err := s.Seal(place, json.RawMessage(`1`)); !errors.Is(err, away) || got != nil {
		t.Errorf("Seal = %s, %v", got, err)
	}
	sealed, err := good.Seal(place, json.RawMessage(`1`))
	if err != nil {
		t.Fatal(err)
	}
	err = seal.Failure(s.Open(place, sealed))
	if err == nil || seal.Lasting(err) || !strings.Contains(err.Error(), away.Error()) {
		t.Errorf("Open: %v", err)
	}
	bad := &seal.Sealer{Codec: broken{good.Codec, nil, `k"1`}, Namespace: ns}
	if _, err := bad.Seal(place, json.RawMessage(`1`)); err == nil {
		t.Error("an ID of a key that no row can have was taken")
	}
}
