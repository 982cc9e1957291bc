package telemetry

import (
	"math"
	"strconv"
	"strings"
)

// ContentType is what a scraper is told.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// text is everything in Prometheus' text format 0.0.4. A metric that has no number yet is
// described all the same.
func (r *registry) text() []byte {
	out := make([]byte, 0, 16<<10)
	for _, f := range r.families {
		out = f.text(out)
	}
	return out
}

func (f *family) text(out []byte) []byte {
	out = append(out, "# HELP "+f.name+" "+helpEscapes.Replace(f.help)+"\n# TYPE "+f.name+" "+f.kind+"\n"...)
	if f.now != nil {
		if value, known := f.now(); known {
			out = f.sample(out, "", nil, "", value)
		}
		return out
	}
	for _, s := range f.sorted() {
		if f.bounds == nil {
			out = f.sample(out, "", s.values, "", s.get())
			continue
		}
		// The count is the sum of the buckets as they were read, so that the two
		// agree whatever is being counted meanwhile.
		var count uint64
		for i := range s.buckets {
			count += s.buckets[i].Load()
			bound := math.Inf(1)
			if i < len(f.bounds) {
				bound = f.bounds[i]
			}
			out = f.sample(out, "_bucket", s.values, number(bound), float64(count))
		}
		out = f.sample(out, "_sum", s.values, "", s.get())
		out = f.sample(out, "_count", s.values, "", float64(count))
	}
	return out
}

// sample is one line. le is the bound of a bucket.
func (f *family) sample(out []byte, suffix string, values []string, le string, value float64) []byte {
	out = append(out, f.name+suffix...)
	mark := byte('{')
	label := func(name, value string) {
		out = append(out, mark)
		out = append(out, name+`="`+labelEscapes.Replace(strings.ToValidUTF8(value, "�"))+`"`...)
		mark = ','
	}
	for i, v := range values {
		label(f.labels[i], v)
	}
	if le != "" {
		label("le", le)
	}
	if mark == ',' {
		out = append(out, '}')
	}
	return append(append(append(out, ' '), number(value)...), '\n')
}

func number(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	case math.IsNaN(f):
		return "NaN"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)
