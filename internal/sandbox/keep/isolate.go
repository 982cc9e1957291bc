package keep

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"chorus/internal/egress"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
)

// isolate makes the executor of the command's own sandbox and adds what the command needs there: the proxy
// through which it reaches the network, and the judge of the programs that it starts. Both run in the keeper.
func (k *keeper) isolate(b sandbox.Background, command *sandbox.Command) (_ *bwrap.Executor, undo func(), err error) {
	var undos []func()
	undo = func() {
		for _, f := range undos {
			f()
		}
	}
	// The path of a socket must be short. Through the open folder, the folder's length does not matter.
	folder, err := os.Open(k.dir)
	if err != nil {
		return nil, undo, err
	}
	undos = append(undos, func() { _ = folder.Close() })
	below := func(name string) string {
		return filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), name)
	}
	rules := egress.Rules{Hosts: b.Hosts}
	for _, s := range b.Secrets {
		rules.Secrets = append(rules.Secrets, egress.Secret{Name: s.Name, Hosts: s.Hosts, Value: func() (string, error) { return s.Value, nil }})
	}
	socket := below(proxyName)
	_ = os.Remove(filepath.Join(k.dir, proxyName))
	proxy, err := egress.Listen(context.Background(), "unix:"+socket, rules, egress.Options{Setting: b.Setting, Dir: k.dir})
	if err != nil {
		return nil, undo, err
	}
	undos = append([]func(){func() { _ = proxy.Close() }}, undos...)
	view := egress.View{Proxy: bwrap.Proxy}
	if len(b.Secrets) > 0 {
		if view.Trust, err = proxy.TrustFile(); err != nil {
			return nil, undo, err
		}
		command.Roots = append([]sandbox.Root{{Path: view.Trust}}, command.Roots...)
	}
	env, err := proxy.Environ(view)
	if err != nil {
		return nil, undo, err
	}
	command.Env = append(env, command.Env...)
	command.Network = &sandbox.Network{Proxy: socket}
	if b.Judged {
		judge, err := listenForJudge(filepath.Join(k.dir, judgeName), below(judgeName), k.own)
		if err != nil {
			return nil, undo, err
		}
		command.Judge = judge.judge
		undos = append([]func(){judge.close}, undos...)
	}
	return bwrap.New(bwrap.Options{Environ: os.Environ(), Hide: b.Hide}), undo, nil
}
