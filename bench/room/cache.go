package room

import (
	"context"
	"errors"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/catalog"
	"chorus/internal/sim/llmsim"
)

// Share is how much of all input the provider's cache had.
type Share struct {
	All     float64 // of every request of the script
	Growing float64 // while the window fills, from the second request on
	Between float64 // between two rolls: without the requests right after one
	Rolls   int
	Tokens  int // all input
}

// sum is input and what of it was in the cache.
type sum struct{ input, read int }

func (s *sum) add(u chat.Usage) {
	s.input += u.Input + u.CacheRead + u.CacheWrite
	s.read += u.CacheRead
}

func (s sum) share() float64 {
	if s.input == 0 {
		return 0
	}
	return float64(s.read) / float64(s.input)
}

type counter struct {
	all, growing, between sum
	rolls                 int
}

// add counts an answer; fresh ones had nothing in the cache to expect.
func (c *counter) add(u chat.Usage, fresh bool) {
	c.all.add(u)
	switch {
	case fresh:
	case c.rolls == 0:
		c.growing.add(u)
	default:
		c.between.add(u)
	}
}

func (c *counter) share() Share {
	return Share{All: c.all.share(), Growing: c.growing.share(), Between: c.between.share(), Rolls: c.rolls, Tokens: c.all.input}
}

// Cache plays the script through the engine and counts what the cache had.
func Cache(ctx context.Context, dir string, wrap Wrap) (share Share, err error) {
	r, err := open(ctx, dir, wrap)
	if err != nil {
		return Share{}, err
	}
	defer func() { err = errors.Join(err, r.close(context.WithoutCancel(ctx))) }()
	var c counter
	first := true
	for i, line := range Script() {
		events, err := r.hear(ctx, line)
		if err != nil {
			return Share{}, fmt.Errorf("message %d: %w", i+1, err)
		}
		fresh := first
		for _, ev := range events {
			switch b := ev.Body.(type) {
			case chat.Rolled:
				c.rolls++
				fresh = true
			case chat.Said:
				c.add(b.Usage, fresh)
				first = false
			}
		}
	}
	return c.share(), nil
}

// Naive sends the last messages and nothing else, as a window that slides does.
func Naive(ctx context.Context, wrap Wrap) (Share, error) {
	sim := llmsim.New(llmsim.Options{})
	url, stop, err := sim.Start()
	if err != nil {
		return Share{}, err
	}
	defer stop()
	entry, _ := catalog.Lookup("anthropic", modelName)
	var m model.Model = anthropic.New(anthropic.Options{APIKey: "test-key", BaseURL: url})
	if wrap != nil {
		m = wrap(m, entry)
	}
	var c counter
	var said []*model.Message
	add := func(role model.Role, from, text string) error {
		msg, err := model.NewMessage(role, chat.Participant{Name: from}, chat.TextBlocks(text))
		said = append(said, msg)
		return err
	}
	head := &model.Head{System: system()}
	for _, line := range Script() {
		if err := add(model.User, line.From, line.Text); err != nil {
			return Share{}, err
		}
		if !line.Asks {
			continue
		}
		sim.Push(llmsim.Text(line.Answer))
		shown := said[max(0, len(said)-Limits.Messages):]
		for shown[0].Role == model.Assistant {
			shown = shown[1:]
		}
		usage, err := once(ctx, m, model.Request{Model: modelName, Head: head, Messages: shown, Marks: []int{len(shown) - 1}, Settings: chat.Settings{MaxTokens: 1000}})
		if err != nil {
			return Share{}, err
		}
		c.add(usage, false)
		if err := add(model.Assistant, Bot, line.Answer); err != nil {
			return Share{}, err
		}
	}
	return c.share(), nil
}

func once(ctx context.Context, m model.Model, req model.Request) (chat.Usage, error) {
	p, err := m.Prepare(req)
	if err != nil {
		return chat.Usage{}, err
	}
	for chunk, err := range m.Stream(ctx, p) {
		if err != nil {
			return chat.Usage{}, err
		}
		if done, ok := chunk.(model.Done); ok {
			return done.Usage, nil
		}
	}
	return chat.Usage{}, errors.New("no answer")
}
