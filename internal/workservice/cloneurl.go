package workservice

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"chorus/internal/netguard"
)

// CheckCloneURL lets people who do not run this Chorus clone repositories from public addresses only.
func CheckCloneURL(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("only addresses that begin with https:// can be cloned; ask whoever runs this Chorus to add others")
	}
	if u.User != nil {
		return errors.New("an address must not contain a name or a password: others would see it")
	}
	if err := new(netguard.Guard).CheckHost(ctx, u.Hostname()); err != nil {
		return fmt.Errorf("%s cannot be cloned: %w", u.Host, err)
	}
	return nil
}
