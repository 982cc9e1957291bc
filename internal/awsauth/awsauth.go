// Package awsauth finds AWS credentials as Amazon's own programs do, and signs requests with them: for models on Bedrock and for
// storage that speaks S3.
//
// It promises that nothing is looked up before the first call, that looking up ends with the caller's context, and that
// credentials which end are renewed before they do.
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
	// ExpiryWindow is how long before their end credentials are replaced.
	ExpiryWindow = 2 * time.Minute
)

// Options say which credentials are meant; whatever is empty is looked up.
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

// Chain finds credentials and the region with the vendor's library: environment, shared files, sign-ins,
// processes, roles, containers, the machine. Nothing is read before the first call.
type Chain struct {
	opts   Options
	lock   chan struct{} // held while loaded is read or written; a channel, so that waiting ends with the context
	loaded *aws.Config   // nil: not loaded, or forgotten
}

// New makes a chain.
func New(opts Options) *Chain {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	return &Chain{opts: opts, lock: make(chan struct{}, 1)}
}

// Credentials are the fixed ones of the options, else the cached ones while they are valid, else new ones.
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

// load reads the environment and the shared files, once.
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
		config.WithDefaultRegion("us-east-1"),                              // where roles are asked for if nothing else is said
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

// Forget makes the next call look again, in the files too.
func (c *Chain) Forget() {
	c.lock <- struct{}{}
	c.loaded = nil
	<-c.lock
}

// Region is the one of the options, of the environment, or of the profile.
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

// profileOf is the profile that was loaded.
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

// httpClient is for the short calls that credentials take. It keeps no connections, and bounds each call: the
// library goes on with one when everybody who waited for it has left.
func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(lookupTime).WithTransportOptions(func(t *http.Transport) {
		t.DisableKeepAlives = true
		t.Proxy = proxy
	})
}

// proxy is the environment's, except for the services that containers and machines have at link-local addresses: they
// cannot be reached through one, and what they say is secret.
func proxy(r *http.Request) (*url.URL, error) {
	if ip := net.ParseIP(r.URL.Hostname()); ip != nil && (ip.IsLinkLocalUnicast() || strings.HasPrefix(ip.String(), "fd00:ec2::")) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// Sign adds the headers that prove who asks. payload is the SHA-256 of the body in hex. The path is signed as it is written in the
// URL, once escaped, where asWritten is set, as S3 wants it; other services escape it once more.
func (k Keys) Sign(ctx context.Context, r *http.Request, payload, service, region string, asWritten bool, now time.Time) error {
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = asWritten })
	keys := aws.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}
	return signer.SignHTTP(ctx, keys, r, payload, service, region, now)
}
