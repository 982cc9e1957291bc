// Package awsauth finds AWS credentials as Amazon's own programs do, and signs requests
// with them, for models on Bedrock and for S3-compatible storage.
//
// It promises that nothing is looked up before the first call, that a lookup ends with the
// caller's context, and that expiring credentials are renewed before they expire.
package awsauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/smithy-go/logging"
)

const (
	// lookupTime is how long a call may wait for credentials.
	lookupTime = 15 * time.Second
	// ExpiryWindow is how long before their expiry credentials are replaced.
	ExpiryWindow = 2 * time.Minute
)

// Options say which credentials to use. Empty fields are looked up.
type Options struct {
	AccessKey, SecretKey, SessionToken string
	Region                             string
	Profile                            string
	Getenv                             func(string) string // nil: os.Getenv
}

// Keys are what a request is signed with.
type Keys struct {
	AccessKeyID, SecretAccessKey, SessionToken string
}

// Chain finds credentials and the region with Amazon's library: environment, shared files, sign-ins,
// processes, roles, containers, the machine. It reads nothing before the first call.
type Chain struct {
	opts   Options
	lock   chan struct{} // held while loaded is used; a channel, so that waiting ends with the context
	loaded *aws.Config   // nil: not loaded, or forgotten
}

// New returns a Chain.
func New(opts Options) *Chain {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	return &Chain{opts: opts, lock: make(chan struct{}, 1)}
}

// Credentials returns the fixed credentials of the options, or the
// cached ones while they are valid, or new ones.
func (c *Chain) Credentials(ctx context.Context) (Keys, error) {
	if c.opts.AccessKey != "" || c.opts.SecretKey != "" {
		if c.opts.AccessKey == "" || c.opts.SecretKey == "" {
			return Keys{}, errors.New("an access key and a secret key belong together, and one is missing")
		}
		return Keys{AccessKeyID: c.opts.AccessKey, SecretAccessKey: c.opts.SecretKey, SessionToken: c.opts.SessionToken}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	cfg, err := c.load(ctx)
	if err != nil {
		return Keys{}, err
	}
	found, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return Keys{}, signInHint(cfg, err)
	}
	return Keys{AccessKeyID: found.AccessKeyID, SecretAccessKey: found.SecretAccessKey, SessionToken: found.SessionToken}, nil
}

// load reads the environment and the shared files once.
func (c *Chain) load(ctx context.Context) (*aws.Config, error) {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.loaded != nil {
		return c.loaded, nil
	}
	client := httpClient()
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithEndpointCredentialOptions(func(o *endpointcreds.Options) { o.HTTPClient = client }),
		config.WithProcessCredentialOptions(func(o *processcreds.Options) { o.Timeout = lookupTime }),
		config.WithCredentialsCacheOptions(func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = ExpiryWindow }),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }), // the caller retries and records each attempt
		config.WithDefaultRegion("us-east-1"),                              // where roles are requested if no region is set
		config.WithLogger(logging.Nop{}),                                   // it would write to standard error
	}
	if c.opts.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.opts.Profile))
	}
	if c.opts.Region != "" {
		options = append(options, config.WithRegion(c.opts.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	c.loaded = &cfg
	return c.loaded, nil
}

// Forget makes the next call look everything up again, including the files.
func (c *Chain) Forget() {
	c.lock <- struct{}{}
	c.loaded = nil
	<-c.lock
}

// Region returns the region of the options, the environment or the profile.
func (c *Chain) Region(ctx context.Context) (string, error) {
	for _, r := range []string{c.opts.Region, c.opts.Getenv("AWS_REGION"), c.opts.Getenv("AWS_DEFAULT_REGION")} {
		if r = strings.TrimSpace(r); r != "" {
			return r, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	cfg, err := c.load(ctx)
	if err != nil {
		return "", err
	}
	return profileOf(cfg).Region, nil // not cfg.Region, which has a default
}

// profileOf returns the profile that was loaded.
func profileOf(cfg *aws.Config) config.SharedConfig {
	for _, source := range cfg.ConfigSources {
		if profile, ok := source.(config.SharedConfig); ok {
			return profile
		}
	}
	return config.SharedConfig{}
}

// signInHint adds the command that renews a sign-in to the error of a profile that needs one.
func signInHint(cfg *aws.Config, err error) error {
	profile := profileOf(cfg)
	command := ""
	switch {
	case profile.SSOSession != nil || profile.SSOAccountID != "":
		command = "aws sso login"
	case profile.LoginSession != "":
		command = "aws login"
	default:
		return err
	}
	return fmt.Errorf("%w; if the sign-in has ended, run: %s --profile %s", err, command, profile.Profile)
}

// httpClient is for the short calls that fetch credentials. It keeps no connections and limits each
// call: the library continues a call even when everybody who waited for it has left.
func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(lookupTime).WithTransportOptions(func(t *http.Transport) {
		t.DisableKeepAlives = true
		t.Proxy = proxy
	})
}

// proxy returns the environment's proxy, except for the link-local services of containers and
// machines: they cannot be reached through a proxy, and their answers are secret.
func proxy(r *http.Request) (*url.URL, error) {
	if ip := net.ParseIP(r.URL.Hostname()); ip != nil && (ip.IsLinkLocalUnicast() || strings.HasPrefix(ip.String(), "fd00:ec2::")) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// Sign adds the headers that prove who sends the request. payload is the SHA-256 of the body
// in hex. With asWritten, the path is signed as it appears in the URL, escaped once, as S3
// requires; other services require it escaped once more.
func (k Keys) Sign(ctx context.Context, r *http.Request, payload, service, region string, asWritten bool, now time.Time) error {
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = asWritten })
	keys := aws.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}
	return signer.SignHTTP(ctx, keys, r, payload, service, region, now)
}
