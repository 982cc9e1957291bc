package isolate

import "context"

// AwaitEarly waits until what was begun early is done.
func (d *EgressProxy) AwaitEarly() { d.early.wait(context.Background()) }
