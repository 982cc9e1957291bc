// Package folders tells that something in a folder changed. It may tell too often and, on file systems that tell
// nothing, never: whoever uses it also looks by itself from time to time.
package folders

import "github.com/fsnotify/fsnotify"

// Watcher tells of changes in folders.
type Watcher struct {
	watcher *fsnotify.Watcher // nil: the system has no more watches
	changes chan struct{}
	done    chan struct{}
}

// Watch begins to watch, until Close. Of what changed only the paths count that matter says; nil: all.
func Watch(matters func(path string) bool) *Watcher {
	w := &Watcher{changes: make(chan struct{}, 1), done: make(chan struct{})}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		w.watcher = nil
		close(w.done)
		return w
	}
	go w.listen(matters)
	return w
}

func (w *Watcher) listen(matters func(string) bool) {
	defer close(w.done)
	for {
		select {
		case _, ok := <-w.watcher.Errors: // events were lost: look
			if !ok {
				return
			}
		case e, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			if matters != nil && !matters(e.Name) {
				continue
			}
		}
		select {
		case w.changes <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// Add watches the folders that exist; those that it watches already are left as they are.
func (w *Watcher) Add(dirs ...string) {
	if w.watcher == nil {
		return
	}
	for _, dir := range dirs {
		_ = w.watcher.Add(dir) // it may not exist; whoever looks by itself comes by again
	}
}

// Changes has a value when something changed since the last one was taken.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Close ends it.
func (w *Watcher) Close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // nothing can be done about it
	}
	<-w.done
}
