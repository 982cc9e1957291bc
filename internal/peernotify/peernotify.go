// Package peernotify tells the other processes that work on the same data that something was written. How is a matter of
// where they are: datagrams on one home (In), PostgreSQL or NATS between machines (the packages below).
//
// It promises never to wait, never to return an error to the sender and never to be needed: whoever notifies has
// written already, and whoever subscribes also looks by itself from time to time, so a notification that is lost
// costs that time and nothing else. A notification is trusted only so far: it names something worth a look.
// peernotifytest has the suite that every implementation passes.
package peernotify

// Peers are the other processes that work on the same data.
type Peers interface {
	// Notify tells every other subscribed process that something was written. It does not wait, and what is no topic
	// is not sent.
	Notify(Topic)
	// Subscribe receives what others notify of, until it is closed. A process has at most one.
	Subscribe() (*Subscription, error)
	// Close ends what goes on beside; it waits for that. Whoever notifies afterwards notifies nobody. It may be
	// called twice.
	Close()
}
