//go:build !linux

package chaos

import (
	"context"
	"errors"
	"net"
	"testing"
)

type network struct{}

type port struct{}

func newNetwork(testing.TB) (*network, error) {
	return nil, errors.New("network namespaces are Linux's")
}

func (*network) addr() string { return "" }

func (*network) plugIn() (*port, error) { return nil, errors.ErrUnsupported }

func (*port) within() []string { return nil }

func (*port) cut() error { return errors.ErrUnsupported }

func (*port) heal() error { return errors.ErrUnsupported }

func (*port) dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
