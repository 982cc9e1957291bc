package node

import (
	"net"
	"os"
	"testing"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ configured, scheme, listens, want string }{
		{" https://chorus.example:9/ ", "http", "127.0.0.1:8420", "https://chorus.example:9"},
		{"", "http", "127.0.0.1:8420", "http://127.0.0.1:8420"},
		{"", "https", "0.0.0.0:8420", "https://" + host + ":8420"},
		{"", "http", "[::]:1", "http://" + host + ":1"},
	} {
		at, err := net.ResolveTCPAddr("tcp", c.listens)
		if err != nil {
			t.Fatal(err)
		}
		if got := Address(c.configured, c.scheme, at); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
