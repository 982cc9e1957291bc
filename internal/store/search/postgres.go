package search

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/text"
)

// postgresIndex is the full-text index in tables of the database. Words are
// split and folded here and not by the server, so that they are the same as
// with SQLite, whatever the server's languages are.
type postgresIndex struct{ db *database.DB }

// maxLexeme is below the maximum length of a word on the server.
const maxLexeme = 512

// token is a word of a text: its position and its folded form.
type token struct {
	from, to int
	folded   string
}

// tokens returns the words of a text: letters and digits, with their marks.
func tokens(s string) []token {
	var out []token
	from := -1
	end := func(to int) {
		if from >= 0 {
			if folded := fold(s[from:to]); folded != "" {
				out = append(out, token{from, to, folded})
			}
		}
		from = -1
	}
	for i, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			if from < 0 {
				from = i
			}
		case from >= 0 && unicode.Is(unicode.Mn, r):
		default:
			end(i)
		}
	}
	end(len(s))
	return out
}

// fold returns a word in lower case and without accents.
func fold(word string) string {
	folded := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(word))
	return text.Prefix(norm.NFC.String(folded), maxLexeme)
}

// vector returns a text as the server searches it: each word with its positions.
func vector(s string) string {
	places := map[string][]string{}
	var order []string
	for i, t := range tokens(s) {
		if places[t.folded] == nil {
			order = append(order, t.folded)
		}
		if len(places[t.folded]) < 255 { // the server forgets any more
			places[t.folded] = append(places[t.folded], strconv.Itoa(min(i+1, 16383)))
		}
	}
	for i, word := range order {
		order[i] = "'" + word + "':" + strings.Join(places[word], ",")
	}
	return strings.Join(order, " ")
}

// tsQuery returns the query in the server's syntax. Words contain only
// letters and digits, so nothing in them is an operator.
func tsQuery(terms []term) string {
	var all []string
	for _, one := range terms {
		var words []string
		for _, t := range tokens(one.text) {
			words = append(words, "'"+t.folded+"'")
		}
		if len(words) == 0 {
			continue
		}
		if one.begins {
			words[len(words)-1] += ":*"
		}
		all = append(all, "("+strings.Join(words, " <-> ")+")")
	}
	return strings.Join(all, " & ")
}

func (ix postgresIndex) reached(ctx context.Context, thread chat.ThreadID) (int64, error) {
	return ix.db.Count(ctx, `SELECT coalesce(max(seq), 0) FROM search_places WHERE thread = ?`, string(thread))
}

// add indexes a page that begins after from, unless somebody else has moved on from there meanwhile.
func (ix postgresIndex) add(ctx context.Context, agent string, from int64, page []chat.Event) (reached int64, err error) {
	thread, last := string(page[0].Thread), page[len(page)-1].Seq
	err = ix.db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`INSERT INTO search_places (thread, seq) VALUES (?, ?)
			ON CONFLICT (thread) DO UPDATE SET seq = excluded.seq WHERE search_places.seq = ?`, thread, last, from)
		if err != nil {
			return err
		}
		if n == 0 {
			return tx.Row(`SELECT seq FROM search_places WHERE thread = ?`, []any{thread}, &reached)
		}
		reached = last
		for _, e := range page {
			if err := addWords(tx, agent, e); err != nil {
				return err
			}
		}
		return nil
	})
	return reached, err
}

func addWords(tx database.Tx, agent string, e chat.Event) error {
	thread := string(e.Thread)
	switch b := e.Body.(type) {
	case chat.Edited:
		if b.Files {
			return nil // the words are the same
		}
		words := database.CleanText(text.Prefix(b.Blocks.Text(), maxIndexedMessage))
		return tx.Exec(`UPDATE search_docs SET text = ?, words = CAST(? AS tsvector) WHERE thread = ? AND seq = ?`, words, vector(words), thread, b.Seq)
	case chat.Deleted:
		return tx.Exec(`DELETE FROM search_docs WHERE thread = ? AND seq = ?`, thread, b.Seq)
	}
	who, words := said(agent, e)
	if words = database.CleanText(words); strings.TrimSpace(words) == "" {
		return nil
	}
	return tx.Exec(`INSERT INTO search_docs (thread, seq, at, agent, who, kind, text, words) VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS tsvector))
		ON CONFLICT (thread, seq) DO NOTHING`, thread, e.Seq, database.Micros(e.At), agent, who, string(e.Body.Kind()), words, vector(words))
}

// erase removes a thread's words. The position that was reached stays.
func (ix postgresIndex) erase(ctx context.Context, thread chat.ThreadID) error {
	return ix.db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`DELETE FROM search_docs WHERE thread = ?`, string(thread))
	})
}

func (ix postgresIndex) find(ctx context.Context, terms []term, o Options, from int, part part) ([]Hit, error) {
	query := tsQuery(terms)
	if query == "" {
		return nil, nil
	}
	var where database.Where
	where.Add("words @@ CAST(? AS tsquery)", query)
	where.Equal("thread", string(o.Thread))
	where.Equal("agent", o.Agent)
	where.Begins("thread", o.Prefix)
	newest, args := where.On(`SELECT thread, seq, at, who, kind, text, words FROM search_docs`)
	var hits []Hit
	err := ix.db.Query(ctx, `WITH newest AS MATERIALIZED (`+newest+` ORDER BY at DESC, thread, seq DESC LIMIT ?+0 OFFSET ?+0)
		SELECT thread, seq, at, who, kind, text FROM newest ORDER BY ts_rank(words, CAST(? AS tsquery), 1) DESC, at DESC, thread, seq LIMIT ?+0 OFFSET ?+0`,
		append(args, rankedAmong, from, query, part.limit, part.skip), func(rows *sql.Rows) error {
			h, err := scanHit(rows)
			h.Snippet = excerpt(h.Snippet, terms, o.MarkStart, o.MarkEnd)
			hits = append(hits, h)
			return err
		})
	return hits, err
}

// excerptWords is how many words of a text a hit shows. excerptBefore is
// how many of them come before the first match.
const excerptWords, excerptBefore = 24, 8

// excerpt returns the part of a text around the first match, with marks around all matches.
func excerpt(s string, terms []term, markStart, markEnd string) string {
	words := tokens(s)
	found := func(t token) bool {
		return slices.ContainsFunc(terms, func(one term) bool {
			wanted := tokens(one.text)
			for i, w := range wanted {
				if w.folded == t.folded || one.begins && i == len(wanted)-1 && strings.HasPrefix(t.folded, w.folded) {
					return true
				}
			}
			return false
		})
	}
	first := max(0, slices.IndexFunc(words, found)-excerptBefore)
	last := min(len(words), first+excerptWords)
	if first == last {
		return s
	}
	var out strings.Builder
	at := words[first].from
	if first == 0 {
		at = 0
	} else {
		out.WriteString("…")
	}
	for _, t := range words[first:last] {
		out.WriteString(s[at:t.from])
		if found(t) {
			out.WriteString(markStart + s[t.from:t.to] + markEnd)
		} else {
			out.WriteString(s[t.from:t.to])
		}
		at = t.to
	}
	if last < len(words) {
		return out.String() + "…"
	}
	return out.String() + s[at:]
}
