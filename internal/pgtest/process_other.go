//go:build !unix

package pgtest

import (
	"errors"
	"syscall"
)

var errNotHere = errors.New("tests with PostgreSQL run on Linux, macOS and the BSDs only: leave them out with go test -short")

const (
	interrupt = syscall.SIGINT
	quit      = syscall.SIGQUIT
	kill      = syscall.SIGKILL
)

func own(string) error                              { return errNotHere }
func attributes(bool) (*syscall.SysProcAttr, error) { return nil, errNotHere }
func signal(int, syscall.Signal) error              { return errNotHere }
func freeze(int) error                              { return errNotHere }
func thaw(int) error                                { return errNotHere }
func slay(int) error                                { return errNotHere }
