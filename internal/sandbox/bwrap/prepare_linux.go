package bwrap

import (
	"os"
	"sync"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap/inside"
	"chorus/internal/sandbox/process"
)

// Prepare sets a sandbox up for a program that is talked to over its standard streams. It
// sees what a command would see, in a sandbox of its own. Time and output are the caller's
// to limit. What it leaves in a folder that was no repository before is not looked at when
// it ends: in the hours that it may run, a person may have made one there.
func (e *Executor) Prepare(command sandbox.Command) (*sandbox.Prepared, error) {
	a, err := e.attempt(command)
	if err != nil {
		return nil, err
	}
	return &sandbox.Prepared{
		Start: func(in, out, errs *os.File) (sandbox.Program, error) {
			return a.serve(process.Streams{In: in, Out: out, Err: errs})
		},
		Release: sync.OnceFunc(a.view.release),
	}, nil
}

// service is a program in a sandbox of its own.
type service struct {
	*running
	end func()
}

func (a *attempt) serve(streams process.Streams) (sandbox.Program, error) {
	i, err := a.start()
	if err != nil {
		return nil, err
	}
	end := i.close
	if i.forward != nil {
		stop := i.forward.carryTo(a.network.Proxy)
		end = func() {
			i.close()
			stop()
		}
	}
	started, err := i.begin(inside.Request{Path: a.path, Argv: a.argv, Env: a.env, Dir: a.view.dir}, streams)
	if err != nil {
		end()
		return nil, err
	}
	return &service{started, end}, nil
}

func (s *service) Wait() (int, error) {
	code, err := s.running.Wait()
	s.end()
	return code, err
}
