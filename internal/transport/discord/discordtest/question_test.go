package discordtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/sim/discordsim"
)

// shopProcess names the file into which an MCP server of these tests writes its process; without it there is no server.
const shopProcess = "DISCORDTEST_SHOP_PROCESS"

// shopForm asks for a value of each kind.
const shopForm = `{"message":"What shall be ordered?","requestedSchema":{"type":"object","required":["name","count","size"],"properties":{
	"name":{"type":"string","minLength":2},"count":{"type":"integer","minimum":1},"gift":{"type":"boolean"},"size":{"type":"string","enum":["S","M","L"]}}}}`

// serveShop is an MCP server on stdin and stdout. Its tool order asks a question, and says what came back.
func serveShop(process string) {
	if err := os.WriteFile(process+".new", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		os.Exit(1)
	}
	if err := os.Rename(process+".new", process); err != nil {
		os.Exit(1)
	}
	type message struct {
		ID     json.RawMessage `json:"id,omitempty"`
		Method string          `json:"method,omitempty"`
		Params struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"params"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	var call json.RawMessage
	reply := func(id json.RawMessage, result string) {
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id, result)
	}
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			os.Exit(1)
		}
		switch {
		case m.Method == "initialize":
			reply(m.ID, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}`, m.Params.ProtocolVersion))
		case m.Method == "tools/list":
			reply(m.ID, `{"tools":[{"name":"order","description":"orders something","inputSchema":{"type":"object","properties":{}}}]}`)
		case m.Method == "tools/call":
			call = m.ID
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":%s}\n", strings.Join(strings.Fields(shopForm), " "))
		case string(m.ID) == `"q"` && m.Method == "":
			text, _ := json.Marshal("the answer is " + string(m.Result))
			reply(call, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text))
		case len(m.ID) > 0 && m.Method != "":
			reply(m.ID, `{}`)
		}
	}
	os.Exit(0)
}

// shopT is a guild whose agent has the tools of the server.
type shopT struct {
	*guildT
	process string
}

func inShop(t *testing.T) shopT {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := filepath.Join(t.TempDir(), "process")
	g := inOldGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}}, People: []discordsim.PersonSpec{{Name: "ada"}, {Name: "bob"}}}, map[string]string{}, func(g *guildT) {
		g.write("shared.yaml", fmt.Sprintf("answer: all\ncontinuationModel: demo/script\nsandbox: host\npermissions: open\neditors: [discord:%s]\naccess:\n  discord:%s: open\nmcpServers:\n  shop: {command: %q, env: {%s: %q}}\n",
			g.User("ada"), g.User("ada"), self, shopProcess, process))
	})
	return shopT{g, process}
}

// ordered has the tool called, and gives the card with the question.
func (g shopT) ordered() (prompt discordsim.ID, card discordsim.Message) {
	g.Helper()
	prompt = g.say("ada", "general", "call mcp__shop__order {}\nend\nsay it is over")
	return prompt, g.question(prompt, "What shall be ordered?")
}

// question waits for an open question below a message.
func (g shopT) question(prompt discordsim.ID, words string) discordsim.Message {
	g.Helper()
	return g.message("question "+words, func(m discordsim.Message) bool {
		return answers(prompt)(m) && strings.Contains(m.Text(), words) && strings.Contains(fmt.Sprint(m.CustomIDs()), "c1:words:")
	})
}

// opens opens the form of a question and gives its id and what Discord was told to show.
func (g shopT) opens(who string, card discordsim.Message) (form, shown string) {
	g.Helper()
	for _, id := range card.CustomIDs() {
		if strings.HasPrefix(id, "c1:words:") {
			form = id
		}
	}
	i, err := g.Click(who, card.ID, form)
	if err != nil {
		g.Fatal(err)
	}
	return form, string(g.answered("the click", i).Modal)
}

// fills opens the form of a question and sends it with these values.
func (g shopT) fills(who string, card discordsim.Message, values map[string]string) {
	g.Helper()
	form, shown := g.opens(who, card)
	given := map[string]string{}
	for name, value := range values {
		if given["field:"+name] = value; !strings.Contains(shown, "field:"+name) {
			g.Fatalf("the form has no %s: %s", name, shown)
		}
	}
	if _, err := g.Submit(who, form, given); err != nil {
		g.Fatal(err)
	}
}

// told is what the server was told, as the model read it.
func (g shopT) told(prompt discordsim.ID) chat.ToolRan {
	g.Helper()
	return g.result(g.thread(prompt), "mcp__shop__order")
}

// What an MCP server asks for comes as a card with a form; the answer goes back to the server in the kinds it asked for. A value that
// does not fit is asked for again with the reason, and somebody else's answer does not count.
func TestDiscordServerAsksAPerson(t *testing.T) {
	t.Parallel()
	g := inShop(t)
	prompt, card := g.ordered()
	for _, want := range []string{"shop", "name", "count (a whole number", "gift", "size", "S", "M", "L"} {
		if !strings.Contains(card.Text(), want) {
			t.Errorf("the card does not say %q: %q", want, card.Text())
		}
	}
	if ids := fmt.Sprint(card.CustomIDs()); strings.Contains(ids, "c1:yes:") || !strings.Contains(ids, "c1:no:") {
		t.Errorf("a yes without values is offered: %s", ids)
	}
	g.fills("bob", card, map[string]string{"name": "Bob", "count": "1", "size": "S"})
	g.message("a refusal for bob", func(m discordsim.Message) bool {
		return m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), "You cannot answer this")
	})
	form, shown := g.opens("ada", card)
	for _, want := range []string{`"title":"Your answer"`, `"description":"a whole number, at least 1","label":"count"`, `"description":"optional","label":"gift"`, `{"label":"Yes","value":"yes"}`, `{"label":"M","value":"M"}`} {
		if !strings.Contains(shown, want) {
			t.Errorf("the form has no %s: %s", want, shown)
		}
	}
	for _, values := range []map[string]string{{"field:name": "Ada", "field:count": "7", "field:size": "XXL"}, {"field:name": "Ada", "field:count": "7"}} {
		if _, err := g.Submit("ada", form, values); err == nil || !strings.Contains(err.Error(), "Invalid Form Body") {
			t.Errorf("%v is taken: %v", values, err)
		}
	}
	g.fills("ada", card, map[string]string{"name": "Ada", "count": "many", "size": "M"})
	card = g.question(prompt, "count must be a whole number")
	if _, shown := g.opens("ada", card); !strings.Contains(shown, `"value":"Ada"`) || !strings.Contains(shown, `{"default":true,"label":"M"`) {
		t.Errorf("what was right must be given again: %s", shown)
	}
	g.reply("ada", card.ID, "name: Ada\ncount: 7\nsize: XXL") // a reply does as well
	card = g.question(prompt, "size cannot be")
	g.fills("ada", card, map[string]string{"name": "Ada; of London", "count": "7", "gift": "yes", "size": "M"})
	ran := g.told(prompt)
	got := ran.Blocks.Text()
	_, object, _ := strings.Cut(got, "the answer is ")
	var answer struct {
		Action  string
		Content map[string]any
	}
	if err := json.NewDecoder(strings.NewReader(object)).Decode(&answer); err != nil || answer.Action != "accept" || fmt.Sprint(answer.Content) != "map[count:7 gift:true name:Ada; of London size:M]" {
		t.Errorf("the server was told %q, %v", got, err)
	}
	g.hasReaction(prompt, "✅")
}

// A no is told to the server as one, and the run goes on.
func TestDiscordServerIsRefused(t *testing.T) {
	t.Parallel()
	g := inShop(t)
	prompt, card := g.ordered()
	g.clickNo(card)
	if ran := g.told(prompt); !strings.Contains(ran.Blocks.Text(), `"action":"decline"`) {
		t.Errorf("the server was told %q", ran.Blocks.Text())
	}
	g.hasReaction(prompt, "✅")
	g.closed(card)
}

func (g shopT) clickNo(card discordsim.Message) {
	g.Helper()
	for _, id := range card.CustomIDs() {
		if strings.HasPrefix(id, "c1:no:") {
			g.click("ada", card.ID, id)
			return
		}
	}
	g.Fatalf("there is no way to refuse: %q", card.CustomIDs())
}

// closed waits until a card cannot be answered any more.
func (g shopT) closed(card discordsim.Message) {
	g.Helper()
	g.message("the card is closed", func(m discordsim.Message) bool {
		return m.ID == card.ID && !strings.Contains(fmt.Sprint(m.CustomIDs()), "c1:words:")
	})
}

// A server that is killed while its question is open needs no answer any more: the card is closed, and the run goes on with a call that
// failed. So does one whose run is stopped.
func TestDiscordServerIsGoneWhileItAsks(t *testing.T) {
	t.Parallel()
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		g := inShop(t)
		prompt, card := g.ordered()
		data, err := os.ReadFile(g.process)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(string(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if ran := g.told(prompt); !ran.Failed {
			t.Errorf("the call gave %q", ran.Blocks.Text())
		}
		g.hasReaction(prompt, "✅")
		g.closed(card)
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		g := inShop(t)
		prompt, card := g.ordered()
		g.commandShows("ada", "stop", nil, "Stopped 1")
		g.has(g.thread(prompt), chat.KindRunEnded, 1)
		g.closed(card)
	})
}

// A question that nobody answers in time is over: the server is told that there is no answer, the run goes on, and whoever sends the form
// then is told that it is too late.
func TestDiscordServerIsNotAnsweredInTime(t *testing.T) {
	t.Parallel()
	g := inShop(t)
	prompt, card := g.ordered()
	form, _ := g.opens("ada", card)
	err := g.app.DB.Write(t.Context(), func(tx database.Tx) error {
		return tx.Exec(`UPDATE approvals SET deadline = ? WHERE state = 'pending'`, database.Micros(time.Now()))
	})
	if err != nil {
		t.Fatal(err)
	}
	if ran := g.told(prompt); !strings.Contains(ran.Blocks.Text(), `"action":"cancel"`) {
		t.Errorf("the server was told %q", ran.Blocks.Text())
	}
	g.hasReaction(prompt, "✅")
	g.decided(card.ID, "Nobody answered in time")
	if _, err := g.Submit("ada", form, map[string]string{"field:name": "Ada", "field:count": "7", "field:size": "M"}); err != nil {
		t.Fatal(err)
	}
	g.message("too late", func(m discordsim.Message) bool {
		return m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), "Too late: it expired")
	})
}
