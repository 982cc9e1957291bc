package guild

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"chorus/internal/sim/discordsim/apierror"
)

// Poll is a question in a message, with the votes.
type Poll struct {
	Question media        `json:"question"`
	Answers  []PollAnswer `json:"answers"`
	Expiry   *time.Time   `json:"expiry"`
	Multiple bool         `json:"allow_multiselect"`
	Layout   int          `json:"layout_type"`
	Results  object       `json:"results,omitempty"` // as one viewer sees them

	ended bool
	votes map[int][]ID // by the answer's number
}

// PollAnswer is a possible answer.
type PollAnswer struct {
	ID    int   `json:"answer_id"`
	Media media `json:"poll_media"`
}

// media is the text of a question or an answer.
type media struct {
	Text  string `json:"text,omitempty"`
	Emoji *Emoji `json:"emoji,omitempty"`
}

// pollHours is the longest that a poll may run: 32 days.
const pollHours = 32 * 24

// readPoll parses a poll; nil: there is none.
func readPoll(b *messageBody, now time.Time) (*Poll, error) {
	if b.emptyField("poll") {
		return nil, nil
	}
	var asked struct {
		Poll
		Duration int `json:"duration"`
	}
	if err := apierror.Decode(b.Poll, &asked); err != nil {
		return nil, err
	}
	p := asked.Poll
	f := &apierror.Form{}
	f.Between("poll.question.text", len([]rune(p.Question.Text)), 1, 300)
	f.Between("poll.answers", len(p.Answers), 1, 10)
	for i := range p.Answers {
		p.Answers[i].ID = i + 1
		f.Longest(apierror.Item("poll.answers", i)+".poll_media.text", p.Answers[i].Media.Text, 55)
	}
	hours := cmp.Or(asked.Duration, 24)
	if hours < 1 || hours > pollHours {
		f.Add("poll.duration", "NUMBER_TYPE_MAX", "int value should be between 1 and %d.", pollHours)
	}
	expiry := now.Add(time.Duration(hours) * time.Hour)
	p.Expiry, p.Layout, p.Results, p.votes = &expiry, cmp.Or(p.Layout, 1), nil, map[int][]ID{}
	return &p, f.Err()
}

// seenBy returns the poll with its results for one account.
func (p *Poll) seenBy(viewer ID) *Poll {
	if p == nil {
		return nil
	}
	out := *p
	counts := []object{}
	for _, a := range p.Answers {
		if voters := p.votes[a.ID]; len(voters) > 0 {
			counts = append(counts, object{"id": a.ID, "count": len(voters), "me_voted": slices.Contains(voters, viewer)})
		}
	}
	out.Results = object{"is_finalized": p.ended, "answer_counts": counts}
	return &out
}

// The events of votes have intents of their own.
const (
	IntentPolls   = 1 << 24
	IntentDMPolls = 1 << 25
)

// EndPoll closes a poll early, and posts the result as Discord does.
func (g *Guild) EndPoll(by *Account, c *Channel, m *Message) error {
	switch {
	case m.Poll == nil:
		return apierror.BadRequest(520006, "Cannot expire a non-poll message")
	case m.Author.ID != by.ID:
		return apierror.Refuse(http.StatusForbidden, 50001, "Missing Access")
	case m.Poll.ended:
		return apierror.BadRequest(520001, "Poll expired")
	}
	now := g.Now()
	m.Poll.ended, m.Poll.Expiry = true, &now
	g.tellMessage("MESSAGE_UPDATE", c, m, nil)
	_, err := g.put(post{author: m.Author, channel: c, kind: kindPollResult, body: &messageBody{
		Embeds: []object{m.Poll.result()}, Reference: &Reference{MessageID: m.ID, ChannelID: c.ID}}})
	return err
}

// result is the embed with the result of a poll.
func (p *Poll) result() object {
	total, best, tie := 0, PollAnswer{}, false
	for _, a := range p.Answers {
		n := len(p.votes[a.ID])
		total += n
		switch most := len(p.votes[best.ID]); {
		case n > most:
			best, tie = a, false
		case n == most && n > 0:
			tie = true
		}
	}
	fields := []any{}
	add := func(name string, value any) {
		text, ok := value.(string)
		if !ok {
			raw, _ := json.Marshal(value) // a number
			text = string(raw)
		}
		fields = append(fields, object{"name": name, "value": text, "inline": false})
	}
	add("poll_question_text", p.Question.Text)
	add("victor_answer_votes", len(p.votes[best.ID]))
	add("total_votes", total)
	if best.ID != 0 && !tie {
		add("victor_answer_id", best.ID)
		add("victor_answer_text", best.Media.Text)
	}
	return object{"type": "poll_result", "fields": fields}
}

// Vote chooses an answer of a poll for an account, by its number from 1 on.
func (g *Guild) Vote(a *Account, c *Channel, m *Message, answer int) error {
	switch {
	case m.Poll == nil || !slices.ContainsFunc(m.Poll.Answers, func(o PollAnswer) bool { return o.ID == answer }):
		return apierror.BadRequest(520000, "Poll voting blocked")
	case m.Poll.ended:
		return apierror.BadRequest(520001, "Poll expired")
	case slices.Contains(m.Poll.votes[answer], a.ID):
		return nil
	}
	m.Poll.votes[answer] = append(m.Poll.votes[answer], a.ID)
	data := object{"user_id": a.ID, "channel_id": c.ID, "message_id": m.ID, "answer_id": answer}
	if c.GuildID != 0 {
		data["guild_id"] = c.GuildID
	}
	g.emit(Event{Name: "MESSAGE_POLL_VOTE_ADD", intent: IntentPolls, dmIntent: IntentDMPolls, Channel: c, data: data})
	return nil
}

// Voters returns who chose an answer of a poll.
func (g *Guild) Voters(m *Message, answer int) []User {
	users := []User{}
	for _, a := range g.Accounts {
		if m.Poll != nil && slices.Contains(m.Poll.votes[answer], a.ID) {
			users = append(users, a.User)
		}
	}
	return users
}
