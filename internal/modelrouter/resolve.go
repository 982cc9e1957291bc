package modelrouter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/model/catalog"
	"chorus/internal/suggest"
)

// Choice is the model that a name stands for.
type Choice struct {
	Vendor string
	Kind   Kind
	Model  string // the vendor's name for it; may contain slashes and colons
}

// String returns the full name, which resolves to the same choice again.
func (c Choice) String() string { return c.Vendor + "/" + c.Model }

// Resolve finds who offers a model. A name with a vendor's or kind's name before the first slash
// belongs to that vendor. Any other name is looked for in the rules of the vendors in their order,
// in the lists that they gave, in the catalog, and by its prefix. The error is an *Unknown. Resolve
// is pure except for Config, which says who has a key.
func Resolve(name string, vendors []Vendor, discovered Available, known []catalog.Entry) (Choice, error) {
	s := &search{name: name, vendors: vendors, discovered: discovered, known: known}
	for _, find := range []func() (Choice, bool){s.prefixed, s.ruled, s.listed, s.catalogued} {
		if c, ok := find(); ok && c.Model != "" {
			return c, nil
		}
	}
	return Choice{}, s.unknown()
}

type search struct {
	name       string
	vendors    []Vendor
	discovered Available
	known      []catalog.Entry
	why        []Reason
}

func (s *search) not(v Vendor, format string, args ...any) {
	s.why = append(s.why, Reason{v.Name, fmt.Sprintf(format, args...)})
}

func (s *search) named(name string) (Vendor, bool) {
	i := slices.IndexFunc(s.vendors, func(v Vendor) bool { return v.Name == name })
	if i < 0 {
		return Vendor{}, false
	}
	return s.vendors[i], true
}

// prefixed resolves vendor/model or kind/model. A vendor's name takes precedence, but a
// built-in vendor without a key gives way to a vendor of its kind that has one.
func (s *search) prefixed() (Choice, bool) {
	first, rest, ok := strings.Cut(s.name, "/")
	if !ok || rest == "" {
		return Choice{}, false
	}
	v, found := s.named(first)
	if found && (v.Declared || v.Configured()) {
		return Choice{v.Name, v.Kind, rest}, true
	}
	if k := Kind(first); k.Known() {
		if other, ok := s.ofKind(k, rest); ok {
			return Choice{other.Name, k, rest}, true
		}
	}
	return Choice{v.Name, v.Kind, rest}, found
}

// ofKind returns the first vendor of a kind that can be asked for the model, or
// else the built-in one, whose error says which key is missing.
func (s *search) ofKind(k Kind, name string) (Vendor, bool) {
	var fallback Vendor
	for _, v := range s.vendors {
		if v.Kind != k {
			continue
		}
		if fallback.Name == "" || !v.Declared && fallback.Declared {
			fallback = v
		}
		if v.provides(name) != rejects && v.Configured() {
			return v, true
		}
	}
	return fallback, fallback.Name != ""
}

type provision int

const (
	silent provision = iota // it has no rules
	accepts
	rejects
)

func (v Vendor) provides(name string) provision {
	if len(v.Provides) == 0 {
		return silent
	}
	if slices.ContainsFunc(v.Provides, func(p Pattern) bool { return p.Match(name) }) {
		return accepts
	}
	return rejects
}

// ruled asks the vendors' rules.
func (s *search) ruled() (Choice, bool) {
	for _, v := range s.vendors {
		switch v.provides(s.name) {
		case accepts:
			if v.Configured() {
				return Choice{v.Name, v.Kind, s.name}, true
			}
			s.not(v, "would provide it but has no key")
		case rejects:
			s.not(v, "provides only %s", patterns(v.Provides))
		case silent:
		}
	}
	return Choice{}, false
}

func patterns(all []Pattern) string {
	const most = 4 // enough to show what kind of rules they are
	var out []string
	for _, p := range all[:min(len(all), most)] {
		out = append(out, p.String())
	}
	if n := len(all) - most; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}

// listed asks what the vendors said they have. A vendor with rules is limited to them.
func (s *search) listed() (Choice, bool) {
	for _, v := range s.vendors {
		if v.provides(s.name) != silent {
			continue
		}
		offered, asked := s.discovered.Providers[v.Name]
		switch {
		case !v.Configured():
			s.not(v, noKeyReason)
		case asked && offered.Has(s.name):
			return Choice{v.Name, v.Kind, s.name}, true
		case v.Provider().Offline:
		case !asked:
			s.not(v, "was not asked yet what it has")
		case !offered.Valid:
			s.not(v, "did not accept its key when it was asked what it has")
		default:
			s.not(v, "does not list it")
		}
	}
	return Choice{}, false
}

const noKeyReason = "has no key"

// catalogued guesses by the catalog, then by the beginning of the name.
func (s *search) catalogued() (Choice, bool) {
	kind := Kind("")
	for _, e := range s.known {
		if e.Model == s.name {
			kind = Kind(e.Provider)
			break
		}
	}
	if kind == "" {
		kind = byPrefix(s.name)
	}
	if kind == "" {
		return Choice{}, false
	}
	v, ok := s.ofKind(kind, s.name)
	return Choice{v.Name, v.Kind, s.name}, ok
}

// byPrefix returns the kind to which a name belongs by its prefix, or "". A letter must
// not follow the prefix: o1 and o1-mini match, olmo and o1x do not.
func byPrefix(name string) Kind {
	for _, p := range catalog.Providers() {
		for _, prefix := range p.Prefixes {
			if rest, ok := strings.CutPrefix(name, prefix); ok && (rest == "" || strings.HasSuffix(prefix, "-") || rest[0] == '-') {
				return Kind(p.Name)
			}
		}
	}
	return ""
}

// Reason says why a vendor was not chosen.
type Reason struct{ Vendor, Why string }

// Unknown is the error for a name that no vendor has.
type Unknown struct {
	Name       string
	Considered []Reason
	Near       string   // a full name that may have been meant; may be ""
	Vendors    []string // what could come before the slash
}

// Error names the model, what may have been meant, and why each vendor was not chosen.
func (e *Unknown) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown model %q; ", e.Name)
	if e.Near != "" {
		fmt.Fprintf(&b, "did you mean %s? If not, ", e.Near)
	}
	fmt.Fprintf(&b, "name it as provider/model (providers: %s), or see `chorus models`", strings.Join(e.Vendors, ", "))
	var keyless, rest []string
	for _, r := range e.Considered {
		if r.Why == noKeyReason {
			keyless = append(keyless, r.Vendor)
		} else {
			rest = append(rest, r.Vendor+" "+r.Why)
		}
	}
	if len(keyless) > 0 {
		rest = append(rest, "no key for "+strings.Join(keyless, ", "))
	}
	if len(rest) > 0 {
		fmt.Fprintf(&b, ". Considered: %s", strings.Join(rest, "; "))
	}
	return b.String()
}

func (s *search) unknown() *Unknown {
	e := &Unknown{Name: s.name, Considered: s.why, Near: s.near()}
	for _, v := range s.vendors {
		e.Vendors = append(e.Vendors, v.Name)
	}
	slices.Sort(e.Vendors)
	return e
}

// near returns the name that was probably meant: a vendor's name with a typing error, a default
// model that contains the word, any model that does, or the most similar name.
func (s *search) near() string {
	if first, rest, ok := strings.Cut(s.name, "/"); ok && rest != "" {
		var names []string
		for _, v := range s.vendors {
			names = append(names, v.Name)
		}
		if best := suggest.Best(first, names); best != "" {
			return best + "/" + rest
		}
	}
	word := bare(s.name)
	if len(word) < 3 {
		return ""
	}
	// Try an equal name, then one that contains it, then the most
	// similar: a quarter of the letters may be wrong.
	var within, best string
	least := max(1, len(word)/4) + 1
	for _, full := range s.names() {
		_, name, _ := strings.Cut(full, "/")
		if bare(name) == word {
			return full
		}
		if within == "" && strings.Contains(bare(name), word) {
			within = full
		}
		_, family, _ := strings.Cut(name, "-") // people omit claude- and gpt-
		last, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
		for _, candidate := range []string{bare(name), bare(family), bare(last)} {
			if d := suggest.Distance(word, candidate); d < least && candidate != "" {
				best, least = full, d
			}
		}
	}
	return cmp.Or(within, best)
}

// names returns the existing full names, the default models first.
func (s *search) names() []string {
	var out []string
	for _, p := range catalog.Providers() {
		if _, ok := s.named(p.Name); ok {
			out = append(out, p.Name+"/"+p.DefaultModel)
		}
	}
	entries := slices.SortedStableFunc(slices.Values(s.known), func(a, b catalog.Entry) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Model, b.Model))
	})
	for _, e := range entries {
		out = append(out, e.Provider+"/"+e.Model)
	}
	for _, v := range s.vendors {
		for _, name := range s.discovered.Providers[v.Name].Models {
			out = append(out, v.Name+"/"+name)
		}
	}
	return out
}

// bare returns a name without what is easily forgotten.
func bare(s string) string {
	return strings.NewReplacer("-", "", ".", "", "_", "", " ", "").Replace(strings.ToLower(s))
}
