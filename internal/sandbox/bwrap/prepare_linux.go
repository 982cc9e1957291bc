package bwrap

import (
	"context"
	"errors"
	"os"
	"sync"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap/inside"
	"chorus/internal/sandbox/process"
)

// Prepare sets up a sandbox for a program that is used over its standard streams. The program sees
// what a command would see, in its own sandbox. The caller limits its time and output. If the
// program makes a repository in a folder that had none, nobody checks it when the program ends: in
// the hours that it may run, a person may have made one there.
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

// Keep is like Prepare, for a command that is left running: the programs that it starts are judged,
// and what it left in repositories is checked when it ends, as after any command.
func (e *Executor) Keep(command sandbox.Command) (*sandbox.Prepared, error) {
	a, err := e.attempt(command)
	if err != nil {
		return nil, err
	}
	return &sandbox.Prepared{
		Start: func(in, out, errs *os.File) (sandbox.Program, error) {
			a.view.begin()
			s, err := a.serve(process.Streams{In: in, Out: out, Err: errs})
			if err != nil {
				_, unsettled := a.view.settle()
				return nil, errors.Join(err, unsettled)
			}
			return &kept{service: s, view: a.view, mark: a.mark, asked: map[int]bool{}}, nil
		},
		Release: sync.OnceFunc(a.view.release),
	}, nil
}

// kept is a command that is left running.
type kept struct {
	*service
	view  *view
	mark  string
	asked map[int]bool
	notes []string
}

var _ sandbox.Kept = (*kept)(nil)

func (k *kept) Wait() (int, error) {
	code, err := k.service.Wait()
	for _, text := range k.refused {
		k.notes = append(k.notes, "[permissions: "+text+"]")
	}
	notes, unsettled := k.view.settle()
	k.notes = append(k.notes, notes...)
	return code, errors.Join(err, unsettled)
}

func (k *kept) Terminate() int { return process.Terminate(k.mark, k.asked) }

func (k *kept) Notes() []string { return k.notes }

// service is a program in its own sandbox.
type service struct {
	*running
	end     func() (refused []string)
	refused []string // programs that it was refused, once it has ended
}

func (a *attempt) serve(streams process.Streams) (*service, error) {
	i, err := a.start()
	if err != nil {
		return nil, err
	}
	stop := func() {}
	if i.forward != nil {
		stop = i.forward.carryTo(a.network.Proxy)
	}
	answer := func() []string { return nil }
	if i.gate != nil {
		answer = i.gate.Judge(context.Background(), a.command.Judge)
	}
	end := func() []string {
		refused := answer()
		i.close()
		stop()
		return refused
	}
	started, err := i.begin(inside.Request{Path: a.path, Argv: a.argv, Env: a.env, Dir: a.view.dir}, streams)
	if err != nil {
		end()
		return nil, err
	}
	return &service{running: started, end: end}, nil
}

func (s *service) Wait() (int, error) {
	code, err := s.running.Wait()
	s.refused = s.end()
	return code, err
}
