package chaos

import (
	"context"
	"encoding/json"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"chorus/internal/polltest"
)

// The faults suite plays what happens to machines against the real server. After each fault: nothing that was
// acknowledged is lost, nothing happened twice, and the truth is told: by /readyz, by the answer to a post, by
// the stream and by doctor. CHORUS_FAULTS (`make faults`) plays each several times and kills two hundred times.

// times is how often a fault is played.
func times() int {
	if os.Getenv("CHORUS_FAULTS") != "" {
		return 5
	}
	return 1
}

func fault(t *testing.T, play func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for n := range times() {
		t.Run(strconv.Itoa(n+1), play)
	}
}

// talked is a server to which something was said and that has answered.
func talked(t *testing.T) *served {
	t.Helper()
	s := newServed(t, "")
	s.start()
	for range 2 {
		id := s.session()
		for range 3 {
			s.mustSay(id)
		}
	}
	s.settle()
	return s
}

// guarded says whether the guard beside the database knows of all events of the sessions; it may be behind for a moment.
func (s *served) guarded() bool {
	var events int64
	for _, id := range s.sessions {
		_, text := s.call("GET", "/api/sessions/"+id, nil)
		var row struct{ Seq int64 }
		if json.Unmarshal([]byte(text), &row) != nil || row.Seq == 0 {
			return false
		}
		events += row.Seq
	}
	var guard struct{ Written struct{ Events int64 } }
	data, err := os.ReadFile(filepath.Join(s.home, "guard-chorus.db"))
	return err == nil && json.Unmarshal(data, &guard) == nil && guard.Written.Events >= events
}

// refusedPost sees that a post is not taken, with a status and a sentence.
func (s *served) refusedPost(status int, says string) {
	s.t.Helper()
	if got, text := s.say(s.sessions[0], ""); got != status || !strings.Contains(text, says) {
		s.t.Errorf("a post was answered with %d %s, want %d %q", got, text, status, says)
	}
}

// A full disk was told as "disk I/O error (4874)" and 500, and /readyz said 200. A small disk in memory is
// mounted for it, which needs root.
func TestFaultFullDisk(t *testing.T) {
	fault(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "disk")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", dir).CombinedOutput(); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("a disk in memory cannot be mounted: %v %s", err, out)
			}
			t.Skipf("SKIPPED: a disk in memory cannot be mounted here: %v %s", err, out)
		}
		t.Cleanup(func() {
			if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
		s := newServed(t, filepath.Join(dir, "home"))
		s.start()
		id := s.session()
		s.mustSay(id)
		s.settle()
		filler := filepath.Join(dir, "filler")
		_ = os.WriteFile(filler, make([]byte, 12<<20), 0o600) // until nothing more goes in
		status, text := 0, ""
		for range 200 { // the log may have some space left
			if status, text = s.say(id, strings.Repeat("filling ", 4000)); status != http.StatusAccepted {
				break
			}
		}
		if status != http.StatusInsufficientStorage || !strings.Contains(text, "the disk is full") {
			t.Errorf("a post to a full disk: %d %s", status, text)
		}
		s.refused(http.StatusInsufficientStorage, "the disk is full")
		s.told(id, "the disk is full")
		if !strings.Contains(s.log.String(), "the disk is full") {
			t.Errorf("the log says nothing:\n%s", s.log)
		}
		s.kill()
		if out, err := s.output("thread", "list"); err != nil && !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("thread list on a full disk: %s %v", out, err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		s.start()
		s.refused(http.StatusOK, "ok")
		s.settle()
		s.mustSay(s.session())
		s.settle()
		s.look()
	})
}

// A database deleted under a running server lost everything that was said after that, without a word.
func TestFaultDeletedDatabase(t *testing.T) {
	fault(t, func(t *testing.T) {
		s := talked(t)
		files, err := filepath.Glob(filepath.Join(s.home, "chorus.db*"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		s.refusedPost(http.StatusServiceUnavailable, "was removed or replaced while it is in use")
		s.refused(http.StatusServiceUnavailable, "was removed")
		s.told(s.sessions[0], "was removed")
		s.stop()
		if s.launch() {
			t.Fatal("a server began anew where a database was")
		}
		if !strings.Contains(s.log.String(), "is gone") {
			t.Errorf("%s", s.log)
		}
		if out, err := s.doctor("--fix"); err != nil || !strings.Contains(out, "put back from") {
			t.Fatalf("%v\n%s", err, out)
		}
		s.start()
		s.mustSay(s.sessions[0])
		s.settle()
		s.look()
	})
}

// Without anything written or asked, the sweep notices that the database is gone.
func TestFaultDeletedDatabaseIsNoticedByTheSweep(t *testing.T) {
	fault(t, func(t *testing.T) {
		s := talked(t)
		if err := os.Remove(filepath.Join(s.home, "chorus.db")); err != nil {
			t.Fatal(err)
		}
		s.told(s.sessions[0], "was removed")
	})
}

// Bytes flipped in the write-ahead log of a killed server rewound the database; finished runs ran again.
func TestFaultFlippedLog(t *testing.T) {
	fault(t, func(t *testing.T) {
		s := talked(t)
		polltest.Until(t, "the guard has caught up", s.guarded)
		s.kill()
		log := filepath.Join(s.home, "chorus.db-wal")
		data, err := os.ReadFile(log)
		if err != nil || len(data) < 100_000 {
			t.Fatal(len(data), err)
		}
		at := len(data)/3 + rand.IntN(len(data)/3)
		for i := range 4 {
			data[at+i] ^= 0xff
		}
		if err := os.WriteFile(log, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if s.launch() {
			t.Fatal("a server went on with a database that went back")
		}
		if !strings.Contains(s.log.String(), "is not as it was left") || !strings.Contains(s.log.String(), "chorus doctor --fix") {
			t.Errorf("%s", s.log)
		}
		if out, err := s.doctor("--fix"); err != nil || !strings.Contains(out, "accepted as it is") {
			t.Fatalf("%v\n%s", err, out)
		}
		s.start()
		s.sessions = slices.DeleteFunc(s.sessions, func(id string) bool { // the second one may have begun behind what was flipped
			status, _ := s.call("GET", "/api/sessions/"+id, nil)
			return status == http.StatusNotFound
		})
		s.settle() // what would run again has done so by then
		effects, _ := os.ReadFile(filepath.Join(s.repo, "effects.txt"))
		for word := range s.acked {
			if n := strings.Count(string(effects), word); n > 1 {
				t.Errorf("the effect of %s happened %d times", word, n)
			}
		}
		s.acked = map[string]string{} // what was lost was said by doctor
		s.sessions = nil
		s.mustSay(s.session())
		s.settle()
		s.look()
		if out, err := s.doctor(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// A server ran on with a damaged database: posts were taken and nothing came of them.
func TestFaultDamagedDatabase(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"flipped": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for page := 2; page < len(data)/4096; page += 3 {
				for i := range 64 {
					data[page*4096+i] ^= 0xff
				}
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"truncated": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, info.Size()/2); err != nil {
				t.Fatal(err)
			}
		},
		"empty": func(t *testing.T, path string) {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fault(t, func(t *testing.T) {
				s := talked(t)
				s.stop()
				harm(t, filepath.Join(s.home, "chorus.db"))
				if s.launch() { // it may, if what it needs for that can be read
					s.refused(http.StatusServiceUnavailable, "is damaged")
					s.refusedPost(http.StatusServiceUnavailable, "")
					s.stop()
				} else if !strings.Contains(s.log.String(), "chorus doctor --fix") {
					t.Errorf("%s", s.log)
				}
				if out, err := s.doctor("--fix"); err != nil || !strings.Contains(out, "damaged-") && !strings.Contains(out, "lost-") {
					t.Fatalf("%v\n%s", err, out)
				}
				s.start()
				s.refused(http.StatusOK, "ok")
				s.acked, s.sessions = map[string]string{}, nil // what was lost was said by doctor
				s.mustSay(s.session())
				s.settle()
				s.look()
			})
		})
	}
}

// A database that may not be written is told by /readyz. Root may write everything, so the server runs as nobody.
func TestFaultReadOnly(t *testing.T) {
	fault(t, func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("SKIPPED: only root can run the server as somebody else")
		}
		s := talked(t)
		s.stop()
		const nobody = 65534
		for dir := s.home; strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := filepath.Walk(s.home, func(path string, _ os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(path, nobody, nobody)
		}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(victim.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(s.home, "chorus.db"), 0o444); err != nil {
			t.Fatal(err)
		}
		s.as = &syscall.Credential{Uid: nobody, Gid: nobody}
		if s.launch() {
			s.refused(http.StatusServiceUnavailable, "cannot be opened for writing")
			s.refusedPost(http.StatusServiceUnavailable, "cannot be opened for writing")
			s.stop()
		} else if !strings.Contains(s.log.String(), "cannot be opened for writing") {
			t.Errorf("%s", s.log)
		}
		if err := os.Chmod(filepath.Join(s.home, "chorus.db"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.as = nil
		s.start()
		s.mustSay(s.sessions[0])
		s.settle()
		s.look()
	})
}

// A lost attachment was found by nobody until the conversation failed.
func TestFaultLostBlob(t *testing.T) {
	fault(t, func(t *testing.T) {
		s := newServed(t, "")
		s.start()
		id := s.session()
		for n := range 2 {
			made, err := s.output("thread", "attach", id, noise(t, uint64(n)), "--json")
			var upload struct{ ID string }
			if err != nil || json.Unmarshal([]byte(made), &upload) != nil {
				t.Fatalf("%s %v", made, err)
			}
			status, text := s.call("POST", "/api/sessions/"+id+"/chat", map[string]any{"message": "!say seen", "attachments": []string{upload.ID}})
			if status != http.StatusAccepted {
				t.Fatal(status, text)
			}
		}
		s.settle()
		blobs, err := filepath.Glob(filepath.Join(s.home, "blobs", "*", "*"))
		if err != nil || len(blobs) < 2 {
			t.Fatal(blobs, err)
		}
		for i, blob := range blobs {
			if i%2 == 0 {
				err = os.Remove(blob)
			} else {
				err = os.Truncate(blob, 10)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if out, err := s.doctor("--thorough"); err == nil || !strings.Contains(out, "cannot be read any more") {
			t.Errorf("%v\n%s", err, out)
		}
		if out, err := s.doctor("--thorough", "--fix"); err != nil || !strings.Contains(out, "taken note of") {
			t.Errorf("%v\n%s", err, out)
		}
		s.mustSay(id)
		s.settle()
		s.look()
	})
}

// noise is a picture that is too big to be kept within the database.
func noise(t *testing.T, seed uint64) string {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 2))
	img := image.NewRGBA(image.Rect(0, 0, 250, 250))
	for i := range img.Pix {
		img.Pix[i] = byte(dice.Uint32())
	}
	path := filepath.Join(t.TempDir(), "noise.png")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
	return path
}

// A clock that jumps by an hour, ahead and back, loses nothing and repeats nothing.
func TestFaultClock(t *testing.T) {
	fault(t, func(t *testing.T) {
		s := newServed(t, "")
		clock := filepath.Join(t.TempDir(), "clock")
		s.env = []string{"CHORUS_CLOCK=" + clock}
		s.start()
		id := s.session()
		for _, by := range []string{"0s", "1h", "-1h", "0s"} {
			if err := os.WriteFile(clock, []byte(by), 0o600); err != nil {
				t.Fatal(err)
			}
			s.mustSay(id)
			s.settle()
			s.mustSay(id)
		}
		s.settle()
		s.look()
		s.kill()
		s.start()
		s.settle()
		s.look()
	})
}

// Kills in storms: the server dies at any moment, again and again, while people talk to it.
func TestFaultStorm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills servers")
	}
	kills := 12
	if os.Getenv("CHORUS_FAULTS") != "" {
		kills = 200
	}
	s := newServed(t, "")
	s.start()
	for range 6 {
		s.session()
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	for n := range kills {
		for range 1 + dice.IntN(4) {
			s.say(s.sessions[dice.IntN(len(s.sessions))], "")
		}
		time.Sleep(time.Duration(dice.IntN(400)) * time.Millisecond)
		s.kill()
		if !polltest.Soon(s.launch) {
			t.Fatalf("after kill %d the server did not start:\n%s", n+1, s.log)
		}
		if n%20 == 19 {
			s.settle()
		}
	}
	s.settle()
	s.look()
	if out, err := s.doctor("--thorough"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	if out, err := s.command(ctx, nil, "audit", "verify").CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
	t.Logf("%d kills, %d messages acknowledged", kills, len(s.acked))
}
