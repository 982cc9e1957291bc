package modelrouter

import (
	"fmt"
	"strings"

	"chorus/internal/model/catalog"
)

// Kind says whose protocol a vendor uses: the name of a provider in the catalog.
type Kind string

// Provider returns what the catalog knows about the kind.
func (k Kind) Provider() catalog.Provider {
	p, _ := catalog.Find(string(k))
	return p
}

// Known reports whether the catalog has it.
func (k Kind) Known() bool { _, ok := catalog.Find(string(k)); return ok }

// unknownKind returns an error that lists the kinds.
func unknownKind(vendor string, k Kind) error {
	return fmt.Errorf("vendor %s: there is no kind %q; there are %s", vendor, k, kindNames())
}

func kindNames() string { return strings.Join(catalog.Names(nil), ", ") }
