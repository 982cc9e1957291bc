package pages

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/url"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// boardView is the board with its cards rendered: the page and its stream send the same.
type boardView struct {
	Project  string // "": all
	Projects []operations.Project
	Status   operations.WorkStatus
	Columns  []boardColumn
	May      bool   // the reader may move tasks
	Version  string // changes when anything on the board does
}

// boardColumn is a column with its cards.
type boardColumn struct {
	ID, Name string
	Total    int
	Cards    []drawnCard
	More     template.HTML // the link to tasks that are not shown
}

// drawnCard is a rendered card.
type drawnCard struct {
	ID   string
	HTML template.HTML
}

func (b boardView) version() string {
	sum := fnv.New64a()
	for _, c := range b.Columns {
		fmt.Fprint(sum, c.ID, c.Total, c.More)
		for _, card := range c.Cards {
			fmt.Fprint(sum, card.HTML)
		}
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}

// boardReads is how often a board is read until no task moves meanwhile. If tasks keep moving, the last reading is
// shown; the page hears of later changes.
const boardReads = 3

// board renders the board for a query: a project, and for each column how many tasks of each of its states to show.
// Columns are read one by one, so a task that moves meanwhile could appear in two of them or in none; the page would
// then remove its card, and the keyboard focus with it. The task counts reveal that, and the board is read again.
func (p *Pages) board(ctx context.Context, by operation.Caller, query url.Values) (boardView, error) {
	b := boardView{Project: query.Get("project"), May: by.May(operation.Chat)}
	var err error
	if b.Projects, err = operation.CallWhole(ctx, operations.ListProjects, p.Executor, by, operations.ProjectList{}); err != nil {
		return b, err
	}
	counts, err := p.countTasks(ctx, by, &b)
	for reads := 1; err == nil; reads++ {
		b.Columns = nil
		for _, c := range boardColumns() {
			made, err := p.boardColumn(ctx, by, b, c, counts, query)
			if err != nil {
				return b, err
			}
			b.Columns = append(b.Columns, made)
		}
		before := counts
		if counts, err = p.countTasks(ctx, by, &b); maps.Equal(before, counts) || reads == boardReads {
			break
		}
	}
	b.Version = b.version()
	return b, err
}

// countTasks counts the tasks of the board by state and refreshes its status.
func (p *Pages) countTasks(ctx context.Context, by operation.Caller, b *boardView) (counts map[string]int, err error) {
	if b.Status, err = operations.GetWorkStatus.Call(ctx, p.Executor, by, operation.None{}); err != nil || b.Project == "" {
		return b.Status.ByStatus, err
	}
	one, err := operations.GetProject.Call(ctx, p.Executor, by, operations.ProjectRef{ID: b.Project})
	return one.Tasks, err
}

// boardColumn reads each state separately: many waiting tasks must not hide the few in progress.
func (p *Pages) boardColumn(ctx context.Context, by operation.Caller, b boardView, c column, counts map[string]int, query url.Values) (boardColumn, error) {
	out := boardColumn{ID: c.ID, Name: c.Name}
	limit, more, link := shownOf(c, query), false, ""
	for _, state := range c.States {
		tasks, next, err := p.firstTasks(ctx, by, operations.TaskQuery{Project: b.Project, Status: string(state)}, limit)
		if err != nil {
			return out, err
		}
		for _, t := range tasks {
			drawn, err := p.fragment("board-card", b.cardOf(t))
			if err != nil {
				return out, err
			}
			sum := fnv.New64a()
			fmt.Fprint(sum, drawn)
			drawn = strings.Replace(drawn, "<article", `<article data-version="`+strconv.FormatUint(sum.Sum64(), 36)+`"`, 1)
			out.Cards = append(out.Cards, drawnCard{ID: t.ID, HTML: template.HTML(drawn)})
		}
		more = more || next
		out.Total += max(counts[string(state)], len(tasks))
	}
	if more && limit < mostTasks {
		link = moreLink(c, query, limit)
	}
	html, err := p.fragment("board-more", map[string]any{"Link": link, "Hidden": out.Total - len(out.Cards)})
	out.More = template.HTML(html)
	return out, err
}

// shownOf is how many tasks of each of its states a column shows.
func shownOf(c column, query url.Values) int {
	first := shownTasks
	if c.States[0] == work.Completed {
		first = shownDone
	}
	n, err := strconv.Atoi(query.Get(c.ID))
	if err != nil {
		return first
	}
	return min(max(n, first), mostTasks)
}

// moreLink returns the address of the board with more of a column.
func moreLink(c column, query url.Values, limit int) string {
	next := url.Values{}
	for _, key := range []string{"project", "waiting", "ready", "progress", "asking", "stopped", "done"} {
		if v := query.Get(key); v != "" {
			next.Set(key, v)
		}
	}
	next.Set(c.ID, strconv.Itoa(min(limit+shownTasks, mostTasks)))
	return "/work?" + next.Encode() + "#column-" + c.ID
}

// firstTasks reads as many pages as needed; more: there are others.
func (p *Pages) firstTasks(ctx context.Context, by operation.Caller, q operations.TaskQuery, limit int) (tasks []operations.Task, more bool, err error) {
	if q.Status == string(work.Completed) {
		q.Order = "newest"
	}
	for {
		q.Limit = min(limit-len(tasks), 200)
		list, err := operations.ListTasks.Call(ctx, p.Executor, by, q)
		if err != nil {
			return nil, false, err
		}
		tasks = append(tasks, list.Items...)
		if q.Cursor = list.Next; q.Cursor == "" || len(tasks) >= limit || len(list.Items) == 0 {
			return tasks, list.Next != "", nil
		}
	}
}

// boardUpdate is what changed on a board since it was last sent.
type boardUpdate struct {
	Version string            `json:"version"`
	Parts   map[string]string `json:"parts,omitempty"` // contents of parts of the page, by selector
	Columns []columnUpdate    `json:"columns,omitempty"`
	Cards   map[string]string `json:"cards,omitempty"` // new and changed cards, by task
}

// columnUpdate is a column in which something moved.
type columnUpdate struct {
	ID    string   `json:"id"`
	Total int      `json:"total"`
	More  string   `json:"more"`
	Order []string `json:"order"` // its cards
}

// since returns what changed, and whether anything did.
func (b boardView) since(before boardView) (boardUpdate, bool) {
	u := boardUpdate{Version: b.Version, Cards: map[string]string{}}
	had, place := map[string]template.HTML{}, map[string]boardColumn{}
	for _, c := range before.Columns {
		place[c.ID] = c
		for _, card := range c.Cards {
			had[card.ID] = card.HTML
		}
	}
	for _, c := range b.Columns {
		old, there := place[c.ID]
		same := there && old.Total == c.Total && old.More == c.More && len(old.Cards) == len(c.Cards)
		now := columnUpdate{ID: c.ID, Total: c.Total, More: string(c.More), Order: []string{}}
		for i, card := range c.Cards {
			now.Order = append(now.Order, card.ID)
			same = same && old.Cards[i].ID == card.ID
			if had[card.ID] != card.HTML {
				u.Cards[card.ID] = string(card.HTML)
			}
		}
		if !same {
			u.Columns = append(u.Columns, now)
		}
	}
	return u, len(u.Columns)+len(u.Cards) > 0
}

// boardParts are the parts of the board's page besides its cards, by selector.
func (p *Pages) boardParts(b boardView, frame layout) (map[string]string, error) {
	out, err := p.frameParts(frame)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"board-filters", "board-status", "board-new"} {
		html, err := p.fragment(name, b)
		if err != nil {
			return nil, err
		}
		out["#"+name] = html
	}
	return out, nil
}

// changedParts returns the parts that differ from what was sent.
func changedParts(now, before map[string]string) map[string]string {
	out := map[string]string{}
	for selector, html := range now {
		if html != before[selector] {
			out[selector] = html
		}
	}
	return out
}
