package bedrock

import (
	"context"
	"crypto/sha1" // the name of a file in the vendor's cache, nothing secret
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// webIdentity exchanges a token that stands in a file for a role's keys (EKS, CI).
func (c *chain) webIdentity(ctx context.Context, file, role, session string) (aws.Credentials, error) {
	token, err := os.ReadFile(file)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("read the identity token: %w", err)
	}
	if role == "" {
		return aws.Credentials{}, errors.New("an identity token needs a role (AWS_ROLE_ARN)")
	}
	return c.sts(ctx, nil, url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "RoleArn": {role}, "RoleSessionName": {first(session, "chorus")},
		"WebIdentityToken": {strings.TrimSpace(string(token))},
	})
}

// assumeRole exchanges keys for those of the role that a profile names.
func (c *chain) assumeRole(ctx context.Context, keys aws.Credentials, p map[string]string) (aws.Credentials, error) {
	if p["mfa_serial"] != "" {
		return aws.Credentials{}, errors.New("the role wants an MFA code, and there is nobody to ask for it; give the keys of a session made with it")
	}
	form := url.Values{"Action": {"AssumeRole"}, "RoleArn": {p["role_arn"]}, "RoleSessionName": {first(p["role_session_name"], "chorus")}}
	if id := p["external_id"]; id != "" {
		form.Set("ExternalId", id)
	}
	if d := p["duration_seconds"]; d != "" {
		form.Set("DurationSeconds", d)
	}
	return c.sts(ctx, &keys, form)
}

// sts asks the token service, signed when there are keys.
func (c *chain) sts(ctx context.Context, keys *aws.Credentials, form url.Values) (aws.Credentials, error) {
	form.Set("Version", "2011-06-15")
	body := form.Encode()
	region := first(c.region(), "us-east-1")
	address := first(c.opts.Getenv("AWS_ENDPOINT_URL_STS"), regional("sts", region))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(address, "/")+"/", strings.NewReader(body))
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("ask for the role: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if keys != nil {
		sum := sha256.Sum256([]byte(body))
		if err := v4.NewSigner().SignHTTP(ctx, *keys, req, hex.EncodeToString(sum[:]), "sts", region, time.Now()); err != nil {
			return aws.Credentials{}, fmt.Errorf("sign for the role: %w", err)
		}
	}
	data, status, err := c.fetch(req)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("ask for the role: %w", err)
	}
	if status != http.StatusOK {
		return aws.Credentials{}, fmt.Errorf("the role was refused (HTTP %d): %s", status, first(element(data, "Message"), element(data, "Code"), http.StatusText(status)))
	}
	ends, err := time.Parse(time.RFC3339, element(data, "Expiration"))
	out := aws.Credentials{
		AccessKeyID: element(data, "AccessKeyId"), SecretAccessKey: element(data, "SecretAccessKey"), SessionToken: element(data, "SessionToken"),
		CanExpire: err == nil, Expires: ends,
	}
	if !out.HasKeys() {
		return aws.Credentials{}, errors.New("the answer about the role holds no keys")
	}
	return out, nil
}

// element is the text of an XML element that holds nothing but text. These answers
// have four that matter, and a parser would be linked for them alone.
func element(data []byte, name string) string {
	_, rest, ok := strings.Cut(string(data), "<"+name+">")
	text, _, closed := strings.Cut(rest, "</"+name+">")
	if !ok || !closed {
		return ""
	}
	return strings.TrimSpace(text)
}

// sso exchanges the token that `aws sso login` left behind for a role's keys.
func (c *chain) sso(ctx context.Context, name string, p map[string]string) (aws.Credentials, error) {
	key, from := p["sso_start_url"], p
	if session := p["sso_session"]; session != "" {
		key, from = session, c.profiles()["sso-session "+session]
	}
	again := fmt.Errorf("the sign-in has ended; run: aws sso login --profile %s", name)
	home := c.opts.Getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir() // without a home there is no token in it
	}
	sum := sha1.Sum([]byte(key))
	data, err := os.ReadFile(filepath.Join(home, ".aws", "sso", "cache", hex.EncodeToString(sum[:])+".json"))
	if err != nil {
		return aws.Credentials{}, again
	}
	var token struct {
		Access  string    `json:"accessToken"`
		Expires time.Time `json:"expiresAt"`
	}
	if json.Unmarshal(data, &token) != nil || token.Access == "" || time.Now().After(token.Expires) {
		return aws.Credentials{}, again
	}
	query := url.Values{"role_name": {p["sso_role_name"]}, "account_id": {p["sso_account_id"]}}
	address := first(c.opts.Getenv("AWS_ENDPOINT_URL_SSO"), regional("portal.sso", from["sso_region"]))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(address, "/")+"/federation/credentials?"+query.Encode(), nil)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("ask for the role: %w", err)
	}
	req.Header.Set("X-Amz-Sso_bearer_token", token.Access)
	data, status, err := c.fetch(req)
	switch {
	case err != nil:
		return aws.Credentials{}, fmt.Errorf("ask for the role: %w", err)
	case status == http.StatusUnauthorized:
		return aws.Credentials{}, again
	case status != http.StatusOK:
		return aws.Credentials{}, fmt.Errorf("the role %s of account %s was refused (HTTP %d)", p["sso_role_name"], p["sso_account_id"], status)
	}
	return roleCredentials(data)
}

func roleCredentials(data []byte) (aws.Credentials, error) {
	var answer struct {
		Role struct {
			ID      string `json:"accessKeyId"`
			Secret  string `json:"secretAccessKey"`
			Token   string `json:"sessionToken"`
			Expires int64  `json:"expiration"` // milliseconds
		} `json:"roleCredentials"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Role.ID == "" || answer.Role.Secret == "" {
		return aws.Credentials{}, errors.New("the answer about the role holds no keys")
	}
	return aws.Credentials{
		AccessKeyID: answer.Role.ID, SecretAccessKey: answer.Role.Secret, SessionToken: answer.Role.Token,
		CanExpire: true, Expires: time.UnixMilli(answer.Role.Expires),
	}, nil
}

// fetch makes a short call; its answer is small.
func (c *chain) fetch(req *http.Request) ([]byte, int, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if closed := res.Body.Close(); err == nil {
		err = closed
	}
	return data, res.StatusCode, err
}
