package modelrouter

import "chorus/internal/model/catalog"

// Entry returns what is known about a model at this vendor.
func (v Vendor) Entry(name string) catalog.Entry {
	e, _ := catalog.Lookup(v.Catalog(), name)
	return e
}
