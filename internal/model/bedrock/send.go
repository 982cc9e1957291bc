package bedrock

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"chorus/internal/digest"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// do sends one request, with the token or signed, and returns the response if its
// status is 200. The response's body belongs to the call.
func (p *Provider) do(call *wire.Call, side wire.Side, a access, method, address string, body []byte) (*http.Response, *model.Error) {
	req, err := http.NewRequestWithContext(call.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		return nil, side.Bad("the address %s is not one: %v", address, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	} else {
		if err := a.keys.Sign(call.Context(), req, digest.Of(body), "bedrock", a.region, false, time.Now()); err != nil {
			return nil, side.Bad("sign the request: %v", err)
		}
	}
	res, err := call.Send(req, p.http.Do)
	if err != nil {
		return nil, side.Network(call.Cause(err))
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	report, _ := io.ReadAll(res.Body) // on an error, the status is reported without it
	if call.Context().Err() != nil {
		return nil, side.Network(call.Cause(io.ErrUnexpectedEOF))
	}
	e := p.refused(side, a, res, report)
	if e.Kind == model.Auth {
		p.chain.Forget() // the next attempt reads the credentials again
	}
	return nil, e
}

// refused turns an HTTP status into an error. AWS names the exception in a header.
func (p *Provider) refused(side wire.Side, a access, res *http.Response, report []byte) *model.Error {
	e := side.Status(res.StatusCode, res.Header, report)
	name, _, _ := strings.Cut(res.Header.Get("X-Amzn-Errortype"), ":")
	kind := kindOf(name, e.Message)
	// A kind derived from the message is more precise than the exception's name.
	if kind != "" && e.Kind == side.Status(res.StatusCode, res.Header, nil).Kind || kind == model.TooLong {
		e.Kind = kind
	}
	e.Setting = "the AWS credentials and the account's access to the model"
	switch {
	case name == "UnknownOperationException":
		e.Message += "; if this is the runtime's own address, give that of the control plane too: AWS_ENDPOINT_URL_BEDROCK"
	case name == "ResourceNotFoundException" || res.StatusCode == http.StatusNotFound:
		e.Message += "; check that the model exists in region " + a.region + " and that the account has access to it"
	case strings.Contains(e.Message, "on-demand throughput"):
		e.Message += "; use the model's inference profile, for example us." + side.Model
	}
	return e
}

// kindOf returns the kind of an exception, or "" if it is not known.
func kindOf(name, message string) model.ErrorKind {
	switch strings.ToLower(strings.TrimSuffix(name, "Exception")) {
	case "throttling", "toomanyrequests", "servicequotaexceeded", "requestlimitexceeded":
		return model.RateLimited
	case "serviceunavailable", "modelnotready", "modeltimeout", "modelerror", "modelstreamerror", "internalserver", "internalfailure", "internalservererror":
		return model.Overloaded
	case "accessdenied", "unrecognizedclient", "expiredtoken", "invalidsignature", "incompletesignature", "signaturedoesnotmatch",
		"missingauthenticationtoken", "invalidclienttokenid", "notauthorized", "optinrequired":
		return model.Auth
	case "validation":
		if tooLong(message) {
			return model.TooLong
		}
		return model.BadRequest
	case "resourcenotfound", "unknownoperation", "serialization":
		return model.BadRequest
	default:
		return ""
	}
}

// tooLong recognises how the hosts behind Bedrock say that the context window is full.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{
		"input is too long", "prompt is too long", "too long for requested model", "too many input tokens", "input tokens exceeded", "number of input tokens exceeds", "maximum context length",
		"exceed context limit", "context window", "context length exceeded", "expected maxlength", "exceeds the maximum number of tokens",
	}, func(part string) bool {
		return strings.Contains(message, part)
	})
}

// operation returns the address of one operation of a model. The name is escaped as
// the vendor does it, because the signature covers these bytes.
func operation(base, name, what string) string {
	return base + "/model/" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20") + "/" + what
}
