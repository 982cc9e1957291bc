package settings

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/blobstorage"
	"chorus/internal/blobstorage/s3"
	"chorus/internal/config"
)

// blobParameters are the parameters that an s3:// URL may have.
var blobParameters = []string{"endpoint", "pathStyle", "profile", "region"}

// BlobsOf returns where large blobs are stored outside the database and the
// home, or nil if nowhere. It makes no request yet.
func BlobsOf(bot *config.Bot) (blobstorage.Storage, error) {
	text := strings.TrimSpace(bot.BlobURL)
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("blobUrl cannot be read: %w", err)
	}
	switch u.Scheme {
	case "s3":
		return bucketOf(u, bot)
	case "file":
		if u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(filepath.FromSlash(u.Path)) || u.RawQuery != "" {
			return nil, errors.New("blobUrl: file:// must be followed by the path of a folder on this machine, from its root on: file:///srv/chorus-blobs")
		}
		return blobstorage.NewFolder(filepath.FromSlash(u.Path), nil), nil
	}
	return nil, errors.New("blobUrl must be s3://BUCKET/PREFIX?region=… (with &endpoint=https://HOST for a server that is not Amazon's), or file:///PATH; leave it out to keep attachments where the database is")
}

func bucketOf(u *url.URL, bot *config.Bot) (blobstorage.Storage, error) {
	if u.User != nil {
		return nil, errors.New("blobUrl must not have keys in it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or blobAccessKey and blobSecretKey")
	}
	// Amazon's rule; other servers are as strict.
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(u.Host) {
		return nil, fmt.Errorf("blobUrl: %q is not a bucket name: write s3://BUCKET/PREFIX, in lower-case letters, digits, dots and dashes", u.Host)
	}
	query := u.Query()
	for name := range query {
		if !slices.Contains(blobParameters, name) {
			return nil, fmt.Errorf("blobUrl: %s is not a parameter of s3://; there are %s", name, strings.Join(blobParameters, ", "))
		}
	}
	o := s3.Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Endpoint: query.Get("endpoint"), Region: query.Get("region"), Profile: query.Get("profile"),
		AccessKey: string(bot.BlobAccessKey), SecretKey: string(bot.BlobSecretKey)}
	// Servers other than Amazon's rarely have a name for each bucket, and a dot
	// in a bucket's name does not work with certificates.
	o.PathStyle = o.Endpoint != "" || strings.Contains(o.Bucket, ".")
	if style := query.Get("pathStyle"); style != "" {
		var err error
		if o.PathStyle, err = strconv.ParseBool(style); err != nil {
			return nil, fmt.Errorf("blobUrl: pathStyle is true or false, and not %q", style)
		}
	}
	storage, err := s3.New(o)
	if err != nil {
		return nil, fmt.Errorf("blobUrl: %w", err)
	}
	return storage, nil
}
