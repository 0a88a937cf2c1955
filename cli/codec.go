package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// codecCmd groups the verbs of keys.
type codecCmd struct {
	Key    codecKeyCmd    `cmd:"" help:"Print a new key as a line of a key file."`
	Rewrap codecRewrapCmd `cmd:"" help:"Encrypt all stored values with the newest key."`
}

// Help implements kong.HelpProvider.
func (codecCmd) Help() string {
	return "With --codec-key FILE (or WEAVER_CODEC_KEY) the values of tasks are encrypted with AES-256-GCM before they are stored, and " +
		"decrypted when they are read: inputs, outputs, values of steps, signals, checkpoints, answers, progress messages, events, and " +
		"the logs of commands. Names, labels, metadata, the parameters of pipelines and the texts of errors stay readable, and so do " +
		"the IDs of keys, which are stored next to the values. Every command and worker of the store needs the file.\n\nA key file has " +
		"one key per line: an ID, a space, and 32 random bytes in base64. The last key encrypts, all of them decrypt:\n\n  umask 077; " +
		"weaver codec key k1 > keys    # the first key\n  weaver codec key k2 >> keys              # a new key encrypts from now on\n  " +
		"weaver codec rewrap                      # and the stored values, too\n\nWithout its key nobody can read a value: keep a copy " +
		"of the file, apart from the backups of the store."
}

type codecKeyCmd struct {
	ID string `arg:"" help:"Key ID: letters, digits, '-', '_' and '.'."`
}

// Run implements the verb.
func (c *codecKeyCmd) Run(s *session) error {
	k, err := aesgcm.NewKey(c.ID)
	if err != nil {
		return badInput("", "%q: %w", c.ID, err)
	}
	if s.json() {
		return s.writeJSON(map[string]any{"key": c.ID, "line": k.String()})
	}
	s.printf("%s\n", k)
	return nil
}

type codecRewrapCmd struct {
	Batch    int  `default:"500" placeholder:"N" help:"Rows per batch, at most 1000; default 500."`
	KeepFile bool `help:"Do not rewrite the store's file at the end."`
}

// Help implements kong.HelpProvider.
func (codecRewrapCmd) Help() string {
	return "Decrypts every stored value that another key encrypted, and encrypts it with the last key of the file; unencrypted values are " +
		"encrypted too. It can be interrupted and started again. At the end it rewrites the store's file, while other processes wait; " +
		"with --keep-file old copies stay in unused parts of the file. Remove an old key from the file after every worker has the new " +
		"one and a later rewrap found no value. Logs of commands are kept for a while only and stay unchanged: `weaver logs` needs the " +
		"key that encrypted them."
}

// Run implements the verb.
func (c *codecRewrapCmd) Run(ctx context.Context, s *session) error {
	if c.Batch < 1 || c.Batch > store.MaxLimit {
		return badInput("", "--batch %d: want 1 to %d", c.Batch, store.MaxLimit)
	}
	key, err := s.codec()
	if err != nil {
		return err
	}
	if key == nil {
		return badInput("Name the file of keys with --codec-key or WEAVER_CODEC_KEY.", "there is no key to seal with")
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		var sum ops.Rewrapped
		for {
			got, err := client.Rewrap(ctx, sum.Next, c.Batch)
			sum.Values, sum.Blobs, sum.Plain, sum.Failed = sum.Values+got.Values, sum.Blobs+got.Blobs, sum.Plain+got.Plain, sum.Failed+got.Failed
			if sum.Why == nil {
				sum.Why = got.Why
			}
			if err != nil {
				return err
			}
			if sum.Next = got.Next; sum.Next == "" {
				break
			}
		}
		if f := client.Store(); !c.KeepFile && f.Capabilities().Has(store.CanScrub) {
			if _, err := f.Scrub(ctx, client.Namespace()); err != nil {
				return err
			}
		}
		if s.json() {
			if err := s.writeJSON(map[string]any{"key": key.Newest(), "values": sum.Values, "blobs": sum.Blobs, "plain_blobs": sum.Plain, "failed": sum.Failed}); err != nil {
				return err
			}
		} else {
			s.printf("%s and %s sealed with the key %q.\n", text.Plural(sum.Values, "value"), text.Plural(sum.Blobs, "blob"), key.Newest())
		}
		if sum.Failed > 0 {
			return badInput("Add the missing key to the file, before the last line, and run this again.", "%s not opened: %w", text.Plural(sum.Failed, "value"), sum.Why)
		}
		return nil
	})
}

// codec returns the codec for stored values: the keys of --codec-key, or the codec of the program; nil: no
// encryption.
func (s *session) codec() (codec.Codec, error) {
	if s.flags.CodecKey == "" {
		return s.app.Codec, nil
	}
	if s.sealer != nil {
		return s.sealer, nil
	}
	if err := s.checkSecrets(secretFile{"--codec-key", s.flags.CodecKey}); err != nil {
		return nil, err
	}
	c, err := aesgcm.Open(s.flags.CodecKey)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, badInput(fmt.Sprintf("`%s` makes one.", s.app.Name+" codec key k1 > "+quote(s.flags.CodecKey)), "--codec-key %s: there is no such file", s.flags.CodecKey)
	case err != nil:
		return nil, badInput("", "--codec-key: %w", err)
	}
	s.sealer = c
	return c, nil
}

// sealedLogs returns the codec for the logs of commands.
func (s *session) sealedLogs(c codec.Codec) *logSealer {
	return &logSealer{codec: c, namespace: s.flags.Namespace}
}
