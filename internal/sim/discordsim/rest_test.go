package discordsim

import (
	"bytes"
	"mime/multipart"
	"testing"
)

func FuzzForm(f *testing.F) {
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"payload_json\"\r\n\r\n{}\r\n--b\r\nContent-Disposition: form-data; name=\"files[0]\"; filename=\"../../x\"\r\n\r\nhi\r\n--b--\r\n"))
	f.Add([]byte("--b--"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, files, err := readForm(multipart.NewReader(bytes.NewReader(raw), "b"))
		if err != nil {
			return
		}
		if len(files) > 10 {
			t.Fatalf("%d files were taken", len(files))
		}
	})
}
