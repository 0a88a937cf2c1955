package cli

import (
	"errors"

	"github.com/alecthomas/kong"
)

var errHelp = errors.New("help was shown")

// helpFlag is kong's help flag, but does not exit the process.
type helpFlag bool

// IgnoreDefault implements kong's interface: the flag acts if it is present.
func (helpFlag) IgnoreDefault() {}

// BeforeReset prints the help before any check.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	return errHelp
}

type helpCmd struct {
	Words []string `arg:"" optional:"" name:"command" help:"Command, for example: task retry."`
}

// Run implements the verb; it prints the same help as the flag.
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

// versionFlag prints the same as the verb version.
type versionFlag bool

// IgnoreDefault implements kong's interface: the flag acts if it is present.
func (versionFlag) IgnoreDefault() {}

// BeforeReset prints the version before any check.
func (versionFlag) BeforeReset(ctx *kong.Context) error {
	if _, err := ctx.Stdout.Write([]byte(ctx.Model.Vars()[versionVar] + "\n")); err != nil {
		return err
	}
	return errHelp
}
