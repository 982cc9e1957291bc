package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"chorus/internal/await"
	"chorus/internal/lockfile"
	"chorus/internal/tool/mcp/serverconfig"
)

// Logins are the logins to remote servers, stored in one file each that only its owner
// can read. It may be used from several goroutines and processes.
type Logins struct {
	// Sync exchanges the file of a login with other machines, in whichever direction is
	// needed; nil: there are none. It must be set before the first use.
	Sync func(ctx context.Context, file string) error

	dir    string
	secret func(string) // receives every token; may be nil

	mu sync.Mutex
}

// NewLogins stores logins in a folder, which need not exist. secret receives every
// token that is read or fetched, so that nothing shows it.
func NewLogins(dir string, secret func(string)) *Logins { return &Logins{dir: dir, secret: secret} }

// login is what is stored for one login.
type login struct {
	URL          string    `json:"url"` // of the server; another server gets nothing of it
	ClientID     string    `json:"clientId"`
	ClientSecret string    `json:"clientSecret,omitempty"`
	TokenURL     string    `json:"tokenUrl"`
	AuthStyle    int       `json:"authStyle"`
	Access       string    `json:"accessToken"`
	Refresh      string    `json:"refreshToken,omitempty"`
	Expires      time.Time `json:"expires,omitzero"`
}

// Timeouts and deadlines of logins.
const (
	loginTime   = 5 * time.Minute  // for a person to agree in a browser
	refreshTime = 30 * time.Second // for fetching a new token
	earlyToken  = time.Minute      // how long before its expiry a token is renewed, so that it does not expire in transit
)

func (l *Logins) file(s Server) string {
	return filepath.Join(l.dir, clean(s.Name)+"-"+short(s.Name)+".json")
}

// Has reports whether somebody has logged in to the server.
func (l *Logins) Has(s Server) bool {
	kept, err := l.read(s)
	return err == nil && kept != nil
}

// read returns the login to a server, or nil.
func (l *Logins) read(s Server) (*login, error) {
	data, err := os.ReadFile(l.file(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var kept login
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		return nil, fmt.Errorf("the login of %s cannot be read: %w; log in again: chorus mcp login %s", s.Name, err, s.Name)
	}
	if kept.URL != s.URL {
		return nil, nil
	}
	l.hide(kept.Access, kept.Refresh, kept.ClientSecret)
	return &kept, nil
}

func (l *Logins) hide(secrets ...string) {
	for _, text := range secrets {
		if l.secret != nil && text != "" {
			l.secret(text)
		}
	}
}

func (l *Logins) write(s Server, kept login) error {
	l.hide(kept.Access, kept.Refresh, kept.ClientSecret)
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	return serverconfig.WritePrivate(l.file(s), data)
}

// Remove deletes a login, if there is one.
func (l *Logins) Remove(s Server) error {
	return removeFile(l.file(s))
}

// token returns the current token for the server, or "" if nobody has logged in. It
// renews a token that has expired or that the server has refused.
func (l *Logins) token(ctx context.Context, s Server, refused string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, err := l.read(s)
	if err != nil || kept == nil || kept.good(refused) {
		return kept.access(), err
	}
	lock, err := l.lock(ctx, s)
	if err != nil {
		return "", err
	}
	defer lock.Release()
	if err := l.sync(ctx, s); err != nil {
		return "", err
	}
	// Another process may have renewed it meanwhile, which invalidates the old one.
	if kept, err = l.read(s); err != nil || kept == nil || kept.good(refused) {
		return kept.access(), err
	}
	if kept.Refresh == "" {
		return "", &configError{fmt.Errorf("the login has expired: chorus mcp login %s", s.Name)}
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	config := oauth2.Config{ClientID: kept.ClientID, ClientSecret: kept.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: kept.TokenURL, AuthStyle: oauth2.AuthStyle(kept.AuthStyle)}}
	fresh, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: kept.Refresh}).Token()
	var refusal *oauth2.RetrieveError
	switch {
	case errors.As(err, &refusal):
		return "", &configError{fmt.Errorf("the login has expired (%s): chorus mcp login %s", cmp.Or(refusal.ErrorCode, refusal.Response.Status), s.Name)}
	case err != nil:
		return "", fmt.Errorf("the login could not be renewed: %w", err)
	}
	kept.Access, kept.Refresh, kept.Expires = fresh.AccessToken, cmp.Or(fresh.RefreshToken, kept.Refresh), fresh.Expiry
	if err := l.write(s, *kept); err != nil {
		return "", err
	}
	return kept.Access, l.sync(ctx, s) // before another machine tries to renew with the invalid one
}

func (l *Logins) sync(ctx context.Context, s Server) error {
	if l.Sync == nil {
		return nil
	}
	if err := l.Sync(ctx, filepath.Base(l.file(s))); err != nil {
		return fmt.Errorf("the login of %s cannot be compared with that of other machines: %w", s.Name, err)
	}
	return nil
}

func (k *login) access() string {
	if k == nil {
		return ""
	}
	return k.Access
}

func (k *login) good(refused string) bool {
	return k.Access != refused && (k.Expires.IsZero() || time.Until(k.Expires) > earlyToken)
}

func (l *Logins) lock(ctx context.Context, s Server) (*lockfile.Lock, error) {
	for {
		lock, err := lockfile.Try(l.file(s)+".lock", nil)
		if !errors.Is(err, lockfile.ErrHeld) {
			return lock, err
		}
		if !await.For(ctx, 100*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// ErrNoLogin is the error for a server that asks for no login.
var ErrNoLogin = errors.New("this server asks for no login")

// LoginOptions are what a login needs besides the server itself. All are optional.
type LoginOptions struct {
	Version      string   // the program's version, for greetings
	Scopes       []string // requested in addition to those that the server names
	ClientID     string   // of a registered client; "": this program registers itself
	ClientSecret string
}

// Login logs in to a server by OAuth 2.1. It finds the authorization server, registers this program there,
// passes show the page on which a person agrees in a browser of this machine, and stores the resulting
// tokens.
func (l *Logins) Login(ctx context.Context, s Server, o LoginOptions, show func(page string)) error {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	back, err := newRedirect()
	if err != nil {
		return err
	}
	defer back.close()
	err = l.authorize(ctx, s, o, back.url, func(ctx context.Context, page string) (*auth.AuthorizationResult, error) {
		show(page)
		return back.wait(ctx)
	})
	if err != nil && ctx.Err() != nil {
		return errors.New("nobody has logged in within five minutes")
	}
	return err
}

// authorize performs a login whose browser returns to the address redirect. ask makes a
// person open the page and returns what the browser comes back with.
func (l *Logins) authorize(ctx context.Context, s Server, o LoginOptions, redirect string, ask func(ctx context.Context, page string) (*auth.AuthorizationResult, error)) error {
	done := false
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: &http.Client{Timeout: refreshTime},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "Chorus",
			RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none"}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return ask(ctx, args.URL)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			done = true
			return oauth2.StaticTokenSource(t), l.write(s, login{URL: s.URL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL,
				AuthStyle: int(c.Endpoint.AuthStyle), Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry})
		},
		ScopeFilter: func(named []string) []string {
			return slices.Compact(slices.Sorted(slices.Values(slices.Concat(named, o.Scopes))))
		},
	}
	if o.ClientID != "" {
		config.PreregisteredClient, config.DynamicClientRegistrationConfig = &oauthex.ClientCredentials{ClientID: o.ClientID}, nil
		if o.ClientSecret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
			l.hide(o.ClientSecret)
		}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}
	carrier, err := newRoundTripper(s, nil)
	if err != nil {
		return err
	}
	defer carrier.base.CloseIdleConnections()
	client := sdk.NewClient(&sdk.Implementation{Name: "chorus", Version: o.Version}, nil)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: carrier.client(), OAuthHandler: handler, DisableStandaloneSSE: true},
		&sdk.ClientSessionOptions{ProtocolVersion: settled})
	if err != nil {
		return fmt.Errorf("log in to %s: %w", s.Name, err)
	}
	if !done { // some servers let everybody in and ask for a login only now
		_, err = session.ListTools(ctx, nil)
	}
	_ = session.Close() // it has provided all that was needed
	if !done && err != nil {
		return fmt.Errorf("log in to %s: %w", s.Name, err)
	}
	if !done {
		return ErrNoLogin
	}
	return nil
}
