package shell

import "slices"

// reading is a command line, read according to the rows of a program and its subcommands.
type reading struct {
	usage
	name  string   // "git log"
	outer []usage  // of the program itself, if a subcommand follows
	path  []string // the subcommands
	all   []*row   // the rows on the way to the subcommand, and its own
	from  int      // index of the first word of usage among all words of the command
	lost  bool     // the subcommand is not known
}

// level returns the usage of one more program level above the subcommand.
func (rd *reading) level() *usage {
	if n := len(rd.outer); n < cap(rd.outer) {
		rd.outer = rd.outer[:n+1]
	} else {
		rd.outer = append(rd.outer, usage{})
	}
	return &rd.outer[len(rd.outer)-1]
}

// read reads a command according to its row, down to the subcommand.
// It reuses the memory of earlier readings.
func (rd *reading) read(prog string, r *row, words []word) {
	rd.name, rd.from, rd.all, rd.lost = prog, 1, r.alone, false
	rd.outer, rd.path = rd.outer[:0], rd.path[:0]
	rows, rest := r.alone, words[1:]
	for rows[0].verbs {
		u := rd.level()
		u.read(rows, rest, true)
		if len(u.operands) == 0 {
			rd.usage, *u = *u, rd.usage
			rd.outer = rd.outer[:len(rd.outer)-1]
			return
		}
		verb := u.operands[0]
		if !verb.known || u.unsure != "" {
			rd.usage.reset(rows)
			rd.operands, rd.lost = append(rd.operands, u.operands...), true
			return
		}
		sub := programs().verb(rd.name, verb.value)
		if sub == nil {
			sub = otherVerb(r)
		}
		rd.all = append(slices.Clip(rd.all), sub)
		if rows[0].everywhere {
			rows = append([]*row{sub}, rows...)
		} else {
			rows = sub.alone
		}
		rd.name += " " + verb.value
		rd.path = append(rd.path, verb.value)
		rest = rest[verb.at+1:]
		rd.from += verb.at + 1
	}
	rd.usage.read(rows, rest, false)
}

// otherVerb is the row of a subcommand without special treatment.
func otherVerb(r *row) *row {
	sub := &row{loose: true, single: r.single, exact: r.exact}
	sub.alone = []*row{sub}
	return sub
}

// reading returns a reading to use. Put it back into w.readings when it is no longer needed.
func (w *walker) reading() *reading {
	n := len(*w.readings)
	if n == 0 {
		return new(reading)
	}
	rd := (*w.readings)[n-1]
	*w.readings = (*w.readings)[:n-1]
	return rd
}
