package s3

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/awsauth"
	"chorus/internal/blobstorage"
)

// Error is a refusal by the server. Its text says what helps, if known.
type Error struct {
	where *Storage

	Status  int
	Code    string // of S3; "" if none was given
	Message string
	Region  string        // where the bucket is, if the server says so
	Key     string        // the access key used
	Skew    time.Duration // difference between our clock and the server's, if the server objects to it
}

// Error names the bucket and how to fix the problem.
func (e *Error) Error() string {
	o, at := e.where.o, cmp.Or(e.where.o.Endpoint, "Amazon S3")
	say := ""
	switch e.Code {
	case "NoSuchBucket":
		say = fmt.Sprintf("there is no bucket %s at %s: create it, or correct blobUrl", o.Bucket, at)
	case "AccessDenied", "AllAccessDisabled", "Forbidden":
		say = fmt.Sprintf("access is denied to the key %s: it needs s3:GetObject, s3:PutObject and s3:DeleteObject for %s/%s* and s3:ListBucket for %s", e.Key, o.Bucket, e.where.below(), o.Bucket)
	case "InvalidAccessKeyId":
		say = fmt.Sprintf("%s does not know the access key %s: check AWS_ACCESS_KEY_ID, the profile, or blobAccessKey", at, e.Key)
	case "SignatureDoesNotMatch":
		say = fmt.Sprintf("the secret key is not the one of the access key %s: check AWS_SECRET_ACCESS_KEY, the profile, or blobSecretKey; or a proxy changes requests on their way", e.Key)
	case "RequestTimeTooSkewed":
		say = "the clock of this machine is wrong: set it (timedatectl set-ntp true)"
		if e.Skew != 0 {
			say = fmt.Sprintf("the clock of this machine is %s away from the server's: set it (timedatectl set-ntp true)", e.Skew.Abs().Round(time.Second))
		}
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		say = "the bucket is in another region: write its region into blobUrl (?region=…)"
		if e.Region != "" {
			say = fmt.Sprintf("the bucket is in the region %s: write ?region=%s into blobUrl", e.Region, e.Region)
		}
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		say = "the credentials have expired: renew them"
	case "NoCredentials":
		say = "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or blobAccessKey and blobSecretKey"
	case "":
		say = fmt.Sprintf("%s answered %d without an S3 error: check that blobUrl leads to an S3 server", at, e.Status)
	default:
		say = fmt.Sprintf("%s answered %d %s", at, e.Status, e.Code)
	}
	say = e.where.Name() + ": " + say
	if e.Message != "" {
		say += " (" + strings.Join(strings.Fields(e.Message), " ") + ")"
	}
	return say
}

// Is makes missing bytes fs.ErrNotExist, and a busy server ErrAway.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.Code == "NoSuchKey"
	case blobstorage.ErrAway:
		return e.busy()
	}
	return false
}

// busy reports whether the same request may succeed later.
func (e *Error) busy() bool {
	switch e.Code {
	case "SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable", "Throttling", "RequestLimitExceeded", "OperationAborted", "IncompleteBody", "ExpiredToken":
		return true
	}
	return e.Status >= 500 && e.Status != http.StatusNotImplemented || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// maxSkew is slightly less than servers accept.
const maxSkew = 10 * time.Minute

// refused makes an error from a response.
func (s *Storage) refused(res *http.Response, body []byte, keys awsauth.Keys) error {
	said := struct{ Code, Message, Region string }{}
	if xml.Unmarshal(body, &said) != nil {
		said.Code, said.Message = "", ""
	}
	e := &Error{where: s, Status: res.StatusCode, Code: said.Code, Message: said.Message, Region: cmp.Or(said.Region, res.Header.Get("X-Amz-Bucket-Region")), Key: keys.AccessKeyID}
	theirs, err := http.ParseTime(res.Header.Get("Date"))
	if skew := s.o.Now().Sub(theirs); err == nil && skew.Abs() > maxSkew && (e.Code == "AccessDenied" || e.Status == http.StatusForbidden) {
		e.Code, e.Skew = "RequestTimeTooSkewed", skew // some servers use other codes
	}
	switch {
	case e.Code == "" && (e.Status == http.StatusMovedPermanently || e.Status == http.StatusTemporaryRedirect):
		e.Code = "PermanentRedirect"
	case e.Code == "" && e.Status == http.StatusForbidden: // a response to HEAD has no body
		e.Code = "AccessDenied"
	case e.Code == "ExpiredToken" || e.Code == "InvalidAccessKeyId" || e.Code == "InvalidToken":
		s.chain.Forget() // the next attempt reads the credentials again
	}
	return e
}

// unreachable makes an error from a connection that failed, was cut or was too slow.
func (s *Storage) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errSlow) {
			return cause // the caller's own deadline
		}
		err = cause
	}
	return fmt.Errorf("%w: %s cannot be reached at %s: check that the server runs and that blobUrl is right (%w)", blobstorage.ErrAway, s.Name(), cmp.Or(s.o.Endpoint, "Amazon S3"), err)
}

// again retries something until it succeeds, cannot succeed, or the time is up.
func (s *Storage) again(ctx context.Context, try func(context.Context) error) error {
	end := time.Now().Add(s.o.RetryFor)
	for n := 1; ; n++ {
		err := try(ctx)
		if !errors.Is(err, blobstorage.ErrAway) || n == maxTries || time.Now().After(end) {
			return err
		}
		wait := min(50*time.Millisecond<<n, 2*time.Second)
		if !await.For(ctx, wait/2+rand.N(wait/2)) {
			return err
		}
	}
}
