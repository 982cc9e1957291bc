package egress

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSplice: a tunnel lives while something moves in either direction, and not longer.
func TestSplice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, a := net.Pipe()
		b, far := net.Pipe()
		began, done := time.Now(), make(chan time.Duration, 1)
		go func() {
			splice(t.Context(), a, b, time.Minute)
			done <- time.Since(began)
		}()
		for range 5 { // one way only, each time shortly before the end
			time.Sleep(50 * time.Second)
			go func() { _, _ = far.Write([]byte("x")) }()
			if _, err := near.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if took := <-done; took != 250*time.Second+time.Minute {
			t.Errorf("it ended after %v", took)
		}
		if _, err := near.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
	})
}

func TestSpliceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, a := net.Pipe()
		b, _ := net.Pipe()
		began := time.Now()
		splice(ctx, a, b, time.Minute)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// TestTimed: writing is no silence, and a bound on the whole holds against trickling.
func TestTimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		conn := &timedConn{Conn: near, idle: time.Minute}
		began, done := time.Now(), make(chan time.Duration, 1)
		go func() {
			_, _ = conn.Read(make([]byte, 1))
			done <- time.Since(began)
		}()
		for range 3 {
			time.Sleep(50 * time.Second)
			go func() { _, _ = far.Read(make([]byte, 1)) }()
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if took := <-done; took != 150*time.Second+time.Minute {
			t.Errorf("the read ended after %v", took)
		}
		began, conn.deadline = time.Now(), time.Now().Add(90*time.Second)
		var writer sync.WaitGroup
		defer writer.Wait()
		writer.Go(func() {
			for {
				if _, err := far.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(20 * time.Second)
			}
		})
		for {
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				break
			}
		}
		if took := time.Since(began); took != 90*time.Second {
			t.Errorf("trickling ended after %v", took)
		}
		near.Close()
	})
}
