package openai

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// listing answers every request with a list of models.
type listing []string

func (l listing) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"object":"list","data":[{"id":"` + strings.Join(l, `"},{"id":"`) + `"}]}`
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func TestModelsForTalking(t *testing.T) {
	t.Parallel()
	all := listing{
		"o3", "gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18", "gpt-4o-realtime-preview", "gpt-4o-mini-tts", "gpt-4o-transcribe",
		"gpt-4o-transcribe-diarize", "gpt-4o-audio-preview", "gpt-audio", "gpt-image-1", "gpt-4o-search-preview", "gpt-3.5-turbo-instruct", "chatgpt-4o-latest",
		"o1-pro", "o4-mini-2025-04-16", "omni-moderation-latest", "text-embedding-3-small", "whisper-1", "dall-e-3", "davinci-002", "gpt-5.2-codex", "sora-2",
	}
	talk := []string{"chatgpt-4o-latest", "gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-5.2-codex", "o1-pro", "o3", "o4-mini-2025-04-16"}
	for base, want := range map[string][]string{
		"": talk, "https://api.openai.com/v1": talk, "https://eu.api.openai.com": talk,
		"http://localhost:1234/v1": slices.Sorted(slices.Values(all)), "https://api.openai.com.example/v1": slices.Sorted(slices.Values(all)),
	} {
		p := New(Options{APIKey: "test-key", BaseURL: base, HTTPClient: &http.Client{Transport: all}})
		if got, err := p.Models(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", base, got, err)
		}
	}
	p := New(Options{APIKey: "test-key", Router: &Router{}, HTTPClient: &http.Client{Transport: all}})
	if got, err := p.Models(t.Context()); err != nil || len(got) != len(all) {
		t.Errorf("openrouter: %v, %v", got, err)
	}
}

// What is kept is sorted, some of what was there, and no dated twin of another.
func TestTalkingKeepsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`(gpt-|o3-|tts-)[a-c](-2024-01-0[12])?(-audio)?`), func(s string) string { return s }).Draw(t, "names")
		slices.Sort(names)
		got := talking(names)
		if !slices.IsSorted(got) {
			t.Fatalf("%v", got)
		}
		for _, name := range got {
			bare, dated := strings.CutSuffix(strings.TrimRight(name, "12"), "-2024-01-0")
			if !slices.Contains(names, name) || dated && slices.Contains(names, bare) || strings.Contains(name, "-audio") {
				t.Fatalf("%s of %v", name, names)
			}
		}
	})
}
