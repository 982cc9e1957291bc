package rest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"
)

// File is a Body that is not JSON: the raw bytes, or the one file of a form. It is read once, while it arrives; nothing of it is stored here.
type File struct {
	Name string // of the form's part; "": raw bytes
	io.Reader
}

var fileType = reflect.TypeFor[File]()

// fileMedia are the media types of a File, for the document.
const fileMedia = "application/octet-stream,multipart/form-data"

// openFile returns the File of a request. Uploads are told apart by length and kind, because the bytes are only known after use.
func openFile(op *Operation, w http.ResponseWriter, r *http.Request) (File, []byte, error) {
	if r.ContentLength > op.MaxBody {
		return File{}, nil, TooLarge(op.MaxBody)
	}
	r.Body = &deadlineBody{http.MaxBytesReader(w, r.Body, op.MaxBody), http.NewResponseController(w)}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", r.ContentLength, r.URL.RawQuery))
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Header.Get("Content-Type") == "":
		return File{Reader: r.Body}, sum[:], nil
	case err != nil:
		return File{}, nil, NewProblem(http.StatusUnsupportedMediaType, "unsupported", "the Content-Type cannot be read; send application/octet-stream")
	case media == "application/x-www-form-urlencoded":
		return File{}, nil, NewProblem(http.StatusUnsupportedMediaType, "unsupported", "this kind of form cannot contain files; send the bytes with their own Content-Type, or multipart/form-data")
	case media != "multipart/form-data":
		return File{Reader: r.Body}, sum[:], nil
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return File{}, nil, badFields(http.StatusBadRequest, FieldError{In: "body", Message: "the form cannot be read: " + err.Error()})
	}
	for {
		part, err := parts.NextPart()
		switch {
		case err != nil:
			return File{}, nil, badFields(http.StatusBadRequest, FieldError{In: "body", Message: "there is no file in the form"})
		case part.FileName() != "":
			return File{Name: path.Base(strings.ReplaceAll(part.FileName(), `\`, "/")), Reader: &onlyPart{part, parts}}, sum[:], nil
		}
	}
}

// PieceTimeout limits the time for each piece of a large body. The whole may take any time: the deadlines of ordinary
// requests are extended with each piece.
const PieceTimeout = 30 * time.Second

// deadlineBody is a body that may arrive slowly, but must keep arriving.
type deadlineBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *deadlineBody) Read(into []byte) (int, error) {
	soon := time.Now().Add(PieceTimeout)
	_ = b.control.SetReadDeadline(soon)                    // not every writer has deadlines to extend
	_ = b.control.SetWriteDeadline(soon.Add(PieceTimeout)) // and then there are none to move
	return b.ReadCloser.Read(into)
}

var errTwoFiles = errors.New("there is more than one file in the form; send them one by one")

// onlyPart reads a part, and fails if another file follows, so that none is silently dropped.
type onlyPart struct {
	part  *multipart.Part
	parts *multipart.Reader
}

func (p *onlyPart) Read(into []byte) (int, error) {
	n, err := p.part.Read(into)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	for {
		next, err := p.parts.NextPart()
		switch {
		case err != nil: // includes a form that was not closed: the part itself is complete
			return n, io.EOF
		case next.FileName() != "":
			return n, errTwoFiles
		}
	}
}
