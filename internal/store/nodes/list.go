package nodes

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/database"
	"chorus/internal/owner"
)

// Info is what people see of a node.
type Info struct {
	ID, Name, Kind, Address, Version string
	Labels                           []string
	Started                          time.Time
	Dead, Draining                   bool
	Died                             time.Time // with Dead
	Owns                             []owner.Name
}

// List returns the living nodes and those that died recently, by name.
func List(ctx context.Context, db DB) ([]Info, error) {
	var out []Info
	at := map[string]int{}
	err := db.Query(ctx, `SELECT id, name, kind, address, version, labels, started, dead, drain, died FROM nodes ORDER BY name, id`, nil, database.Fill(&out, func(rows *sql.Rows, i *Info) error {
		var labels string
		var started, died int64
		if err := rows.Scan(&i.ID, &i.Name, &i.Kind, &i.Address, &i.Version, &labels, &started, &i.Dead, &i.Draining, &died); err != nil {
			return err
		}
		i.Started = time.UnixMicro(started)
		if i.Dead {
			i.Died = time.UnixMicro(died)
		}
		at[i.ID] = len(out)
		err := json.Unmarshal([]byte(labels), &i.Labels)
		return err
	}))
	if err == nil {
		err = db.Query(ctx, `SELECT node, name FROM owned WHERE node <> '' ORDER BY name`, nil, func(rows *sql.Rows) error {
			var node, name string
			if err := rows.Scan(&node, &name); err != nil {
				return err
			}
			if i, ok := at[node]; ok {
				out[i].Owns = append(out[i].Owns, owner.Name(name))
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return out, nil
}

// ErrUnknown means that no living node has that name.
var ErrUnknown = errors.New("no node of that name is alive; `chorus node list` shows those that are")

// Drain tells the processes of a node to hand over what they own or, with false, to take things again.
func Drain(ctx context.Context, db DB, name string, drain bool) error {
	flag := 0
	if drain {
		flag = 1
	}
	err := db.Write(ctx, func(tx database.Tx) error {
		rows, err := tx.Change(`UPDATE nodes SET drain = ? WHERE name = ? AND dead = 0`, flag, name)
		if err == nil && rows == 0 {
			err = ErrUnknown
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("drain node %s: %w", name, err)
	}
	return nil
}

// Label adds labels to a node and removes others. They survive its restarts. Its name
// always remains a label. It returns the labels that people gave it.
func Label(ctx context.Context, db DB, name string, add, remove []string) ([]string, error) {
	for _, l := range slices.Concat(add, remove) {
		if err := CheckLabel(l); err != nil {
			return nil, err
		}
	}
	var labels []string
	err := db.Write(ctx, func(tx database.Tx) error {
		given, err := givenLabels(tx, name)
		if err != nil {
			return err
		}
		given = slices.DeleteFunc(append(given, add...), func(l string) bool { return slices.Contains(remove, l) || l == name })
		slices.Sort(given)
		given = slices.Compact(given)
		labels = append([]string{}, given...)
		text, err := json.Marshal(labels)
		if err != nil {
			return err
		}
		err = tx.Exec(`INSERT INTO node_labels (name, labels) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET labels = excluded.labels`, name, string(text))
		if err != nil {
			return err
		}
		return relabel(tx, name, add, remove)
	})
	if err != nil {
		return nil, fmt.Errorf("label node %s: %w", name, err)
	}
	return labels, nil
}

// relabel changes the labels of a node's living processes.
func relabel(tx database.Tx, name string, add, remove []string) error {
	rows := map[string]string{}
	err := tx.Rows(`SELECT id, labels FROM nodes WHERE name = ? AND dead = 0`, []any{name}, database.Pairs(rows))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return ErrUnknown
	}
	for as, text := range rows {
		var labels []string
		if err := json.Unmarshal([]byte(text), &labels); err != nil {
			return err
		}
		labels = slices.DeleteFunc(merged(name, labels, add), func(l string) bool { return l != name && slices.Contains(remove, l) })
		changed, err := json.Marshal(labels)
		if err != nil {
			return err
		}
		if err := tx.Exec(`UPDATE nodes SET labels = ? WHERE id = ?`, string(changed), as); err != nil {
			return err
		}
	}
	return nil
}

// CheckLabel checks that a label is valid.
func CheckLabel(label string) error {
	if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) {
		return fmt.Errorf("%q is not a valid label: use letters, digits, dots, hyphens and underscores, at most 63", label)
	}
	return nil
}

// givenLabels returns the labels that people gave to a node.
func givenLabels(tx database.Tx, name string) ([]string, error) {
	var text string
	err := tx.Row(`SELECT labels FROM node_labels WHERE name = ?`, []any{name}, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var labels []string
	err = json.Unmarshal([]byte(text), &labels)
	return labels, err
}

// Owner returns the living node that owns a thing, and its address, or "".
func Owner(ctx context.Context, db DB, name owner.Name) (id, address string, err error) {
	err = db.Query(ctx, `SELECT nodes.id, nodes.address FROM owned JOIN nodes ON nodes.id = owned.node WHERE owned.name = ? AND nodes.dead = 0`, []any{string(name)}, func(rows *sql.Rows) error {
		return rows.Scan(&id, &address)
	})
	if err != nil {
		return "", "", fmt.Errorf("look who has %s: %w", name, err)
	}
	return id, address, nil
}

// Held returns the names that living nodes own.
func Held(ctx context.Context, db DB) (map[owner.Name]bool, error) {
	out := map[owner.Name]bool{}
	err := db.Query(ctx, `SELECT owned.name FROM owned JOIN nodes ON nodes.id = owned.node WHERE owned.node <> '' AND nodes.dead = 0`, nil, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		out[owner.Name(name)] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look what nodes have: %w", err)
	}
	return out, nil
}
