package modelrouter

import "chorus/internal/model/catalog"

// Entry is what is known of a model at this vendor.
func (v Vendor) Entry(name string) catalog.Entry {
	e, _ := catalog.Lookup(v.Catalog(), name)
	return e
}
