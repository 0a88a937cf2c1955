package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/plainfile"
	"github.com/goweaver/weaver/internal/privatefile"
)

// tokenCmd groups the verbs of credentials.
type tokenCmd struct {
	New      tokenNewCmd      `cmd:"" help:"Print a new token and its line for serve."`
	Password tokenPasswordCmd `cmd:"" help:"Print the line for a password on the standard input."`
}

// Help implements kong.HelpProvider.
func (tokenCmd) Help() string {
	return "A server identifies its users by a token, or by a name and a password. The files of `serve` contain hashes: a token is " +
		"printed once and cannot be read from them. Access is one or more of submit, read, payloads and operate, with commas, or full; " +
		"payloads and operate include read. --token-file adds the line to a file and creates a missing file. A removed line is valid " +
		"until the server restarts. With --keep the token stays in a file, too, for a script that may run again.\n\n  weaver token new ci --access submit,read --token-file tokens\n  weaver token password ann " +
		"--access read,operate >> passwords"
}

// accessFlag sets the access of a principal.
type accessFlag struct {
	Name   string `arg:"" help:"Name of the user or program: the actor in the audit."`
	Access string `required:"" placeholder:"ACCESS" help:"Access: submit, read, payloads, operate, or full."`
}

func (a *accessFlag) parse() (httpapi.Access, error) {
	if a.Name == "" || strings.HasPrefix(a.Name, "#") || strings.ContainsFunc(a.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return 0, badInput("", "the name %q: want one word that does not begin with #", a.Name)
	}
	access, err := httpapi.ParseAccess(a.Access)
	if err != nil {
		return 0, badInput("", "--access: %w", err)
	}
	return access, nil
}

type tokenNewCmd struct {
	accessFlag
	TokenFile string `placeholder:"FILE" help:"File for the line; then only the token is printed."`
	Keep      string `placeholder:"FILE" help:"File for the token, which later calls print again."`
}

// Run implements the verb.
func (c *tokenNewCmd) Run(s *session) error {
	access, err := c.parse()
	if err != nil {
		return err
	}
	if c.Keep != "" {
		return c.keep(s, access)
	}
	token, line := httpapi.NewToken(c.Name, access)
	if c.TokenFile != "" {
		if err := appendLine(c.TokenFile, line); err != nil {
			return badInput("", "--token-file: %w", err)
		}
	}
	switch {
	case s.json():
		return s.writeJSON(map[string]any{"name": c.Name, "access": access.String(), "token": token, "line": line})
	case c.TokenFile != "":
		s.printf("%s\n", token)
	default:
		s.printf("token: %s\nline:  %s\n", token, line)
	}
	return nil
}

// keep prints the token in the file of --keep, or writes a new one there.
func (c *tokenNewCmd) keep(s *session, access httpapi.Access) error {
	if c.TokenFile == "" {
		return badInput("Name one with --token-file.", "--keep %s: the line of a new token needs a file", c.Keep)
	}
	if _, err := privatefile.Check(c.Keep); err != nil {
		return badInput("", "--keep: %w", err)
	}
	token, line := "", ""
	kept, err := plainfile.ReadStream(c.Keep)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		token, line = httpapi.NewToken(c.Name, access)
		// Crash here: the line is in the file, and the token is nowhere. The next call makes another one.
		if err := appendLine(c.TokenFile, line); err != nil {
			return badInput("", "--token-file: %w", err)
		}
		if err := os.WriteFile(c.Keep, []byte(token+"\n"), 0o600); err != nil {
			return badInput("", "--keep: %w", err)
		}
	case err != nil:
		return badInput("", "--keep: %w", err)
	default:
		if token = strings.TrimSpace(string(kept)); token == "" {
			return badInput("Delete the file for a new token.", "--keep %s is empty", c.Keep)
		}
	}
	if s.json() {
		return s.writeJSON(map[string]any{"name": c.Name, "access": access.String(), "token": token, "line": line})
	}
	s.printf("%s\n", token)
	return nil
}

// appendLine appends a line to a file, and first ends an unterminated last line.
func appendLine(file, line string) (err error) {
	if _, err := privatefile.Check(file); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err == nil {
		err = plainfile.Check(file, info)
	}
	if err != nil {
		return err
	}
	if size := info.Size(); info.Mode().IsRegular() && size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err = f.WriteString(line + "\n")
	return err
}

type tokenPasswordCmd struct{ accessFlag }

// maxPassword is the maximum length of a password in bytes.
const maxPassword = 1024

// Run implements the verb.
func (c *tokenPasswordCmd) Run(s *session) error {
	access, err := c.parse()
	if err != nil {
		return err
	}
	password, err := bufio.NewReader(io.LimitReader(s.stdin, maxPassword+2)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the password: %w", err)
	}
	password = strings.TrimRight(password, "\r\n")
	if n := len(password); n < 8 || n > maxPassword {
		return badInput("", "the password on the standard input has %d bytes: want 8 to %d, in one line", n, maxPassword)
	}
	line, err := httpapi.NewPassword(c.Name, access, password)
	if err != nil {
		return err
	}
	if s.json() {
		return s.writeJSON(map[string]any{"name": c.Name, "access": access.String(), "line": line})
	}
	s.printf("%s\n", line)
	return nil
}
