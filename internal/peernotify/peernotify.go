// Package peernotify tells the other processes that work on the same data that something
// was written. The means depends on where they are: datagrams on one home (In),
// PostgreSQL or NATS between machines (the packages below).
//
// Notifying never blocks, never returns an error to the sender and is never required: the sender
// has already written, and subscribers also check on their own from time to time, so a lost
// notification only costs that time. A notification is only a hint that something is worth
// checking. peernotifytest has the suite that every implementation passes.
package peernotify

// Peers are the other processes that work on the same data.
type Peers interface {
	// Notify tells every other subscribed process that something was written.
	// It does not block. An invalid topic is not sent.
	Notify(Topic)
	// Subscribe receives the notifications of others until it is
	// closed. A process has at most one subscription.
	Subscribe() (*Subscription, error)
	// Close ends background work and waits for that. Later notifications go nowhere. It may be called twice.
	Close()
}
