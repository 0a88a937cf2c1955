package cli

import (
	"errors"

	"github.com/alecthomas/kong"
)

var errHelp = errors.New("help was shown")

// helpFlag is kong's own, except that it does not exit the process.
type helpFlag bool

// IgnoreDefault implements kong's interface: the flag acts when it is given.
func (helpFlag) IgnoreDefault() {}

// BeforeReset shows the help before anything is checked.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	return errHelp
}

type helpCmd struct {
	Words []string `arg:"" optional:"" name:"command" help:"The command, for example: task retry."`
}

// Run implements the verb: it is the flag, in another place.
func (c *helpCmd) Run(s *session) error {
	parser, err := newParser(s.app, new(grammar), s.out)
	if err != nil {
		return err
	}
	if _, err = parser.Parse(append(c.Words, "--help")); errors.Is(err, errHelp) {
		return nil
	}
	return usageError(s.app, err)
}

// versionFlag prints what the verb version does.
type versionFlag bool

// IgnoreDefault implements kong's interface: the flag acts when it is given.
func (versionFlag) IgnoreDefault() {}

// BeforeReset prints the version before anything is checked.
func (versionFlag) BeforeReset(ctx *kong.Context) error {
	if _, err := ctx.Stdout.Write([]byte(ctx.Model.Vars()[versionVar] + "\n")); err != nil {
		return err
	}
	return errHelp
}
