package settings_test

import (
	"strings"
	"testing"

	"chorus/internal/config"
	"chorus/internal/settings"
)

func TestBlobsOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, want, wrong string }{
		{"", "", ""},
		{"s3://bucket", "s3://bucket", ""},
		{"s3://my.bucket/a/b/?region=eu-central-1", "s3://my.bucket/a/b", ""},
		{"s3://bucket/p?endpoint=http://minio:9000&region=x&pathStyle=false&profile=p", "s3://bucket/p", ""},
		{"file:///srv/blobs/", "file:///srv/blobs", ""},
		{"file://localhost/srv/blobs", "file:///srv/blobs", ""},
		{"file://elsewhere/srv", "", "a folder on this machine"},
		{"file:relative", "", "from its root on"},
		{"s3://KEY:test-pw@bucket/p", "", "must not have keys in it"},
		{"s3:///p", "", "not a bucket name"},
		{"s3://Bucket", "", "not a bucket name"},
		{"s3://bucket?endpoint=minio:9000", "", "the endpoint"},
		{"s3://bucket?endpoint=http://minio:9000/path", "", "the endpoint"},
		{"s3://bucket?forcePathStyle=true", "", "there are endpoint, pathStyle, profile, region"},
		{"s3://bucket?pathStyle=perhaps", "", "true or false"},
		{"https://bucket.s3.amazonaws.com", "", "must be s3://"},
		{"%", "", "cannot be read"},
	} {
		got, err := settings.BlobsOf(&config.Bot{BlobURL: c.url})
		name := ""
		if got != nil {
			name = got.Name()
		}
		if name != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q: %s, %v", c.url, name, err)
		}
		if err != nil && strings.Contains(err.Error(), "test-pw") {
			t.Errorf("%q: the error gives the key away: %v", c.url, err)
		}
	}
}
