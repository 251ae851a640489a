package main

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth.dev/berth/test/harness/require"
)

// echo answers every line with itself, and returns its address. Its stop returns when all connections to it have ended.
func echo(t *testing.T) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String(), func() {
		_ = listener.Close()
		running.Wait()
	}
}

// say sends a line and waits for its answer.
func say(conn net.Conn, line string) error {
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != line+"\n" {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func TestTheProxyPassesOnAndCutsAndDrops(t *testing.T) { //nolint:paralleltest // it looks for goroutines that are left
	before := goleak.IgnoreCurrent()
	target, stop := echo(t)
	p, err := newProxy(target, 1)
	require.NoError(t, err)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.address())
		require.NoError(t, err)
		return conn
	}
	first, second := dial(), dial()
	for _, conn := range []net.Conn{first, second} {
		require.NoError(t, say(conn, "hello"))
	}
	if n := p.cut(); n != 2 {
		t.Errorf("%d connections were cut, want 2", n)
	}
	for _, conn := range []net.Conn{first, second} {
		if err := say(conn, "still there?"); err == nil {
			t.Error("a connection outlived the cut")
		}
		_ = conn.Close()
	}
	third := dial()
	if err := say(third, "again"); err != nil {
		t.Errorf("a connection after the cut: %v", err)
	}
	p.slow(0, 1000)
	if err := say(third, "lost"); err == nil {
		t.Error("a piece of data that is to be dropped arrived")
	}
	_ = third.Close()
	p.slow(0, 0)
	fourth := dial()
	if err := say(fourth, "calm"); err != nil {
		t.Errorf("a connection after the storm: %v", err)
	}
	p.close()
	if err := say(fourth, "closed"); err == nil {
		t.Error("a connection outlived the proxy")
	}
	_ = fourth.Close()
	stop()
	goleak.VerifyNone(t, before)
}

func TestADelayIsLessThanTheMost(t *testing.T) {
	t.Parallel()
	p, err := newProxy("127.0.0.1:1", 1)
	require.NoError(t, err)
	t.Cleanup(p.close)
	if delay, drop := p.fate(); delay != 0 || drop {
		t.Errorf("without a storm: a delay of %s, dropped %v", delay, drop)
	}
	p.slow(time.Second, 500)
	drops, longest := 0, time.Duration(0)
	for range 1000 {
		delay, drop := p.fate()
		if delay < 0 || delay >= time.Second {
			t.Fatalf("a delay of %s", delay)
		}
		longest = max(longest, delay)
		if drop {
			drops++
		}
	}
	if drops < 400 || drops > 600 || longest < 900*time.Millisecond {
		t.Errorf("%d of 1,000 dropped, the longest delay %s; want about 500 and about a second", drops, longest)
	}
}

func TestATargetThatIsGoneEndsTheConnection(t *testing.T) {
	t.Parallel()
	p, err := newProxy("127.0.0.1:1", 1)
	require.NoError(t, err)
	t.Cleanup(p.close)
	conn, err := net.Dial("tcp", p.address())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if err := say(conn, "anybody?"); err == nil {
		t.Error("an answer came from nowhere")
	}
}
