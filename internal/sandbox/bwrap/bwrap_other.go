//go:build !linux

package bwrap

import (
	"context"
	"errors"

	"chorus/internal/sandbox"
)

var errNoLinux = errors.New("the sandbox bwrap needs Linux: choose docker, or host")

type (
	machine struct{}
	pool    struct{}
	trees   struct{}
	gating  struct{ programs struct{} }
)

func newPrograms([]string) (none struct{}) { return none }

func (*pool) close() {}

func look(Options) machine { return machine{} }

func (machine) learned() string { return "" }

func (e *Executor) run(context.Context, sandbox.Command) (sandbox.Result, error) {
	_ = e.machine()
	return sandbox.Result{}, errNoLinux
}

// Prepare fails as Run does.
func (e *Executor) Prepare(sandbox.Command) (*sandbox.Prepared, error) { return nil, errNoLinux }

// Keep fails as Run does.
func (e *Executor) Keep(sandbox.Command) (*sandbox.Prepared, error) { return nil, errNoLinux }

// StartEarly does nothing: there is nothing to start.
func (e *Executor) StartEarly(context.Context, sandbox.Command) {}

// Probe returns why the executor does not work here.
func (e *Executor) Probe(context.Context) error { return errNoLinux }

// Facts reports which isolation and limits work on this machine.
func (e *Executor) Facts() []Fact { return []Fact{{"namespaces", false, errNoLinux.Error()}} }
