package llmsim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/pattern"
)

// authorization is a SigV4 header with its parts.
var authorization = pattern.Lazy(`^AWS4-HMAC-SHA256 Credential=([^/ ]+)/(\d{8})/([a-z0-9-]+)/bedrock/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

// awsKey accepts a Bedrock API key or a signature. The keys of the options count as API keys and as secret keys; without
// any, every well-formed header is accepted.
func (s *Server) awsKey(r *http.Request, body []byte) *refusal {
	header := r.Header.Get("Authorization")
	if token, bearer := strings.CutPrefix(header, "Bearer "); bearer {
		if s.known(token) {
			return nil
		}
		return &refusal{code: 403, kind: "AccessDeniedException", message: "Authentication failed: Please make sure your API Key is valid."}
	}
	if header == "" {
		if s.opts.NoKey {
			return nil
		}
		return &refusal{code: 403, kind: "MissingAuthenticationTokenException", message: "Missing Authentication Token"}
	}
	parts := authorization().FindStringSubmatch(header)
	date := r.Header.Get("X-Amz-Date")
	if parts == nil || !strings.HasPrefix(date, parts[2]) {
		return &refusal{code: 403, kind: "IncompleteSignatureException", message: "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' parameters and an 'X-Amz-Date' header."}
	}
	signed := strings.Split(parts[4], ";")
	if !slices.Contains(signed, "host") || !slices.Contains(signed, "x-amz-date") {
		return &refusal{code: 403, kind: "InvalidSignatureException", message: "'Host' and 'X-Amz-Date' must be signed headers."}
	}
	if len(s.opts.Keys) == 0 {
		return nil
	}
	for _, secret := range s.opts.Keys {
		if hmac.Equal([]byte(awsSignature(r, body, secret, parts[2], parts[3], date, signed)), []byte(parts[5])) {
			return nil
		}
	}
	return &refusal{code: 403, kind: "InvalidSignatureException", message: "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."}
}

// awsSignature signs a request with a secret key, by AWS's specification.
func awsSignature(r *http.Request, body []byte, secret, day, region, date string, signed []string) string {
	sum := func(data []byte) string { s := sha256.Sum256(data); return hex.EncodeToString(s[:]) }
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	var headers strings.Builder
	for _, name := range signed {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
			if value == "" {
				value = strconv.FormatInt(r.ContentLength, 10)
			}
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	// The path is escaped once more than received.
	var path []string
	for segment := range strings.SplitSeq(r.URL.EscapedPath(), "/") {
		path = append(path, strings.ReplaceAll(url.QueryEscape(segment), "+", "%20"))
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	canonical := strings.Join([]string{r.Method, strings.Join(path, "/"), query, headers.String(), strings.Join(signed, ";"), sum(body)}, "\n")
	scope := strings.Join([]string{day, region, "bedrock", "aws4_request"}, "/")
	key := []byte("AWS4" + secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, sum([]byte(canonical))}, "\n")))
}
