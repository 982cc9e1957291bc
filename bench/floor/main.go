// Command floor is the least program that does an agent's loop: it asks the model,
// runs the shell commands that it calls, and asks again, until there is an answer.
//
// It is what Chorus is measured against, so it promises to stay this small: the
// standard library, one loop, and none of what makes an agent fit for use. It keeps
// nothing, asks nobody, bounds nothing and forgives nothing.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
)

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type request struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    string          `json:"system"`
	Tools     json.RawMessage `json:"tools"`
	Messages  []message       `json:"messages"`
}

var tools = json.RawMessage(`[{"name":"bash","description":"Run a shell command.","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}]`)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("floor", flag.ExitOnError)
	sessions := flags.Int("sessions", 1, "how many conversations at once")
	_ = flags.Parse(args) // exits by itself
	if flags.NArg() != 1 {
		return errors.New("one prompt, please")
	}
	// Each conversation keeps its connection.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *sessions}}
	errs := make([]error, *sessions)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = converse(client, flags.Arg(0)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// converse holds one conversation to its end.
func converse(client *http.Client, prompt string) error {
	req := request{
		Model: "claude-sonnet-4-5", MaxTokens: 8192, Stream: true, System: "You are a coding agent.", Tools: tools,
		Messages: []message{{Role: "user", Content: []block{{Type: "text", Text: prompt}}}},
	}
	for {
		answer, err := ask(client, req)
		if err != nil {
			return err
		}
		req.Messages = append(req.Messages, message{Role: "assistant", Content: answer})
		var results []block
		for _, b := range answer {
			if b.Type != "tool_use" {
				continue
			}
			out, err := bash(b.Input)
			if err != nil {
				return err
			}
			results = append(results, block{Type: "tool_result", ToolUseID: b.ID, Content: out})
		}
		if results == nil {
			for _, b := range answer {
				fmt.Println(b.Text)
			}
			return nil
		}
		req.Messages = append(req.Messages, message{Role: "user", Content: results})
	}
}

// bash runs the command as Chorus does: by the same shell, so that the shell is not what is compared.
func bash(input json.RawMessage) (string, error) {
	var args struct{ Command string }
	if err := json.Unmarshal(input, &args); err != nil {
		return "", err
	}
	out, err := exec.Command("bash", "-c", args.Command).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return string(out), nil
}

func ask(client *http.Client, req request) ([]block, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("X-Api-Key", os.Getenv("ANTHROPIC_API_KEY"))
	post.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := client.Do(post)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return listen(bufio.NewScanner(resp.Body))
}

// listen puts the blocks of a streamed answer together. It reads to the very end, or
// the connection could not be used again.
func listen(lines *bufio.Scanner) ([]block, error) {
	var blocks []block
	ended := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var ev struct {
			Type  string
			Block block `json:"content_block"`
			Delta struct {
				Type, Text string
				Partial    string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return nil, err
		}
		switch ev.Type {
		case "content_block_start":
			ev.Block.Input = nil // it comes in pieces
			blocks = append(blocks, ev.Block)
		case "content_block_delta":
			last := &blocks[len(blocks)-1]
			last.Text += ev.Delta.Text
			last.Input = append(last.Input, ev.Delta.Partial...)
		case "message_stop":
			ended = true
		}
	}
	if !ended {
		return nil, errors.Join(errors.New("the answer ended without an end mark"), lines.Err())
	}
	return blocks, nil
}
