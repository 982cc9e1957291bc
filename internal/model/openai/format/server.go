package format

import (
	"encoding/json"
	"net/http"

	"chorus/internal/model/wire"
)

// Header returns what is sent with every call: the key, and the headers that an installation adds.
func Header(key string, more ...map[string]string) http.Header {
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	for _, headers := range more {
		for name, value := range headers {
			header.Set(name, value)
		}
	}
	return header
}

// ListModels returns the names of the models that a server offers.
func ListModels(rest wire.Rest, call *wire.Call, url string) ([]string, error) {
	defer func() { _ = call.Close() }()
	var list json.RawMessage
	if failed := rest.Get(call, url, "the list of models", &list); failed != nil {
		return nil, failed
	}
	names, err := modelNames(list)
	if err != nil {
		return nil, rest.Side.Network(err)
	}
	return names, nil
}
