// Package folders reports changes in folders. It may report too often and, on file systems that
// report no changes, never. So its users also check by themselves from time to time.
package folders

import (
	"github.com/fsnotify/fsnotify"

	"chorus/internal/await"
)

// Watcher reports changes in folders.
type Watcher struct {
	watcher *fsnotify.Watcher // nil if the system has no more watches
	changes chan struct{}
	done    chan struct{}
}

// Watch watches until Close. Only paths accepted by matters count; nil accepts all.
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
		case _, ok := <-w.watcher.Errors: // events were lost: report a change
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
		await.Notify(w.changes)
	}
}

// Add watches the folders that exist. Folders that are already watched are not changed.
func (w *Watcher) Add(dirs ...string) {
	if w.watcher == nil {
		return
	}
	for _, dir := range dirs {
		_ = w.watcher.Add(dir) // it may not exist; regular checks cover that
	}
}

// Changes returns a channel that has a value when something changed since the last one was taken.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Close stops watching.
func (w *Watcher) Close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // nothing can be done about it
	}
	<-w.done
}
