package bwrap

import (
	"errors"
	"sync"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/process"
)

// Prepare sets a sandbox up for a program that the caller starts itself, with its own pipes
// on the standard streams. It sees what a command would see. Time and output are the
// caller's to limit. What it leaves in a folder that was no repository before is not looked
// at when it ends: in the hours that it may run, a person may have made one there.
func (e *Executor) Prepare(command sandbox.Command) (*sandbox.Prepared, error) {
	a := &attempt{e: e, m: e.machine(), command: command, mark: process.Mark(), network: e.opts.Network, leave: func() {}}
	if a.m.err != nil {
		return nil, a.m.err
	}
	if command.Network != nil {
		a.network = *command.Network
	}
	if a.network.Proxy != "" && a.m.launcher == "" {
		return nil, errors.New("the sandbox reaches a proxy only with a launcher, and has none")
	}
	var err error
	if a.view, err = e.view(command); err != nil {
		return nil, err
	}
	ends := []func(){a.view.release}
	release := sync.OnceFunc(func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	})
	prepared, err := a.ready(&ends)
	if err != nil {
		release()
		return nil, err
	}
	prepared.Release = release
	return prepared, nil
}

// ready makes the descriptors that bubblewrap needs; ends gets what must be undone.
func (a *attempt) ready(ends *[]func()) (*sandbox.Prepared, error) {
	if err := a.prepare(); err != nil {
		return nil, err
	}
	*ends = append(*ends, func() { a.leave() }, a.close)
	feed, err := a.pipe() // argsFD
	if err != nil {
		return nil, err
	}
	*ends = append(*ends, func() { _ = feed.Close() })
	report, err := a.reportPipe() // reportFD: the wrapper would end if nobody held the other side
	if err != nil {
		return nil, err
	}
	*ends = append(*ends, func() { _ = report.Close() })
	if err := errors.Join(a.data(), a.openRoots()); err != nil {
		return nil, err
	}
	if a.network.Proxy != "" {
		stop, err := a.forward(a.network.Proxy)
		if err != nil {
			return nil, err
		}
		*ends = append(*ends, stop)
	}
	return &sandbox.Prepared{
		Argv: a.arguments(), Env: process.Marks(a.command, a.mark), Files: a.files,
		Started: func(pid int) error {
			err := a.started(pid, feed)
			a.close() // the child has them
			return err
		},
	}, nil
}
