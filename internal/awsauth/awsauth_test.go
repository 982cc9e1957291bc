package awsauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The services of containers and machines are not asked through a proxy.
func TestProxyIsNotForLocalServices(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://169.254.169.254/latest", "http://169.254.170.2/x", "http://[fd00:ec2::254]/latest", "http://127.0.0.1:1/"} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if via, err := proxy(&http.Request{URL: u}); via != nil || err != nil {
			t.Errorf("%s through %v, %v", address, via, err)
		}
	}
}

// The examples that Amazon publishes for signatures of S3 (Signature Calculations for the Authorization Header).
func TestSignaturesAreThoseThatAmazonPublishes(t *testing.T) {
	t.Parallel()
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	keys := Keys{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		method, url, payload string
		headers              map[string]string
		want                 string
	}{
		{"GET", "/test.txt", empty, map[string]string{"Range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"PUT", "/test%24file.text", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"}, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"GET", "/?lifecycle=", empty, nil, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"GET", "/?max-keys=2&prefix=J", empty, nil, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://examplebucket.s3.amazonaws.com"+c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Content-Sha256", c.payload)
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		if err := keys.Sign(t.Context(), r, c.payload, "s3", "us-east-1", true, at); err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) {
			t.Errorf("%s %s: %s", c.method, c.url, got)
		}
	}
}
