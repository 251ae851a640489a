package runtimes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func state(t *testing.T, b *Book) []byte {
	t.Helper()
	data, err := b.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheStateIsRead(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for runs := range 100 {
		b := randomBook(r, runs)
		data := state(t, b)
		if len(data) != headerBytes+b.bytes {
			t.Fatalf("the state has %d bytes, %d were counted", len(data), headerBytes+b.bytes)
		}
		read := NewBook()
		if err := read.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(state(t, read), data) || read.bytes != b.bytes {
			t.Fatal("what was read is written in another way")
		}
		class, claim := randomPod(r)
		s, o := b.Of(&class, &claim), read.Of(&class, &claim)
		if s.Left(time.Hour) != o.Left(time.Hour) {
			t.Fatal("what was read forecasts other ends")
		}
		read.Ended(&class, &claim, time.Hour)
		b.Ended(&class, &claim, time.Hour)
		if !bytes.Equal(state(t, read), state(t, b)) {
			t.Fatal("what was read learns in another way")
		}
	}
}

func TestDamagedStatesAreRefused(t *testing.T) {
	good := state(t, randomBook(rand.New(rand.NewPCG(4, 1)), 20))
	swapped := bytes.Clone(good)
	copy(swapped[headerBytes:], bytes.Repeat([]byte{0xff}, len(key{})))
	later := bytes.Clone(good)
	binary.BigEndian.PutUint64(later[1:], 0)
	for name, data := range map[string][]byte{
		"empty":                       nil,
		"cut":                         good[:len(good)-1],
		"too long":                    make([]byte, mostBytes+1),
		"keys out of order":           swapped,
		"records newer than the book": later,
	} {
		b := bookOf(trainer, Claim{}, time.Hour)
		before := state(t, b)
		if err := b.UnmarshalBinary(data); !errors.Is(err, errState) {
			t.Errorf("%s: %v, want %v", name, err, errState)
		}
		if !bytes.Equal(state(t, b), before) {
			t.Errorf("%s: the book has changed", name)
		}
	}
	next := bytes.Clone(good)
	next[0]++
	if err := NewBook().UnmarshalBinary(next); !errors.Is(err, errVersion) {
		t.Errorf("another version: %v, want %v", err, errVersion)
	}
}

func TestTheBookIsBoundedAndFairBetweenNamespaces(t *testing.T) {
	b := NewBook()
	for i := range 160 {
		honest := trainer
		honest.Namespace = [...]string{trainer.Namespace, "team-b", "team-d", "team-e"}[i%4]
		b.Ended(&honest, &Claim{}, 2*time.Hour)
	}
	for i := range 20_000 {
		flood := Class{Namespace: "flood", Controller: fmt.Sprint("c", i), GPUs: i}
		b.Ended(&flood, &Claim{}, time.Second)
		if b.bytes > mostBytes-headerBytes {
			t.Fatalf("the book holds %d bytes", b.bytes)
		}
	}
	if data := state(t, b); len(data) > mostBytes {
		t.Fatalf("the state has %d bytes", len(data))
	}
	within(t, "the other namespace", median(b, trainer, Claim{}, 0), 119*time.Minute, 121*time.Minute)
	sum := 0
	for _, n := range b.held {
		sum += n
	}
	if sum != b.bytes {
		t.Errorf("namespaces hold %d bytes of %d", sum, b.bytes)
	}
	stranger := Class{Namespace: "team-c", GPUs: 8}
	if got := median(b, stranger, Claim{}, 0); got < time.Hour {
		t.Errorf("one namespace decides what is expected of another one: %v", got)
	}
}

func TestANamespaceFillsSharedClassesOnlyWhileItIsAlone(t *testing.T) {
	b := NewBook()
	shared := func() (own int) {
		for _, r := range b.records[trainer.key(anyPod, bySecond)].runs {
			if r.owner == ownerOf(trainer.Namespace) {
				own++
			}
		}
		return own
	}
	for range 2 * window[anyPod] {
		b.Ended(&trainer, &Claim{}, time.Hour)
	}
	if got := shared(); got != window[anyPod] {
		t.Errorf("alone, a namespace has %d runs, want %d", got, window[anyPod])
	}
	other := trainer
	other.Namespace = "team-b"
	for range window[anyPod] {
		b.Ended(&trainer, &Claim{}, time.Hour)
		b.Ended(&other, &Claim{}, time.Minute)
	}
	if got := shared(); got > window[anyPod]*3/4 {
		t.Errorf("beside another one, it has %d of %d runs", got, window[anyPod])
	}
}

func TestTheBookKnowsOnceSomePodsHaveEnded(t *testing.T) {
	b := NewBook()
	for i := range 2 * enough {
		if b.Knows() != (i >= enough) {
			t.Fatalf("after %d runs, Knows() is %v", i, b.Knows())
		}
		b.Ended(&trainer, &Claim{}, time.Hour)
	}
}

func FuzzState(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 1))
	for runs := range 4 {
		data, err := randomBook(r, 10*runs).MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := NewBook()
		if b.UnmarshalBinary(data) != nil {
			return
		}
		written := state(t, b)
		if !bytes.Equal(written, data) {
			t.Fatal("what was read is written in another way")
		}
		b.Ended(&trainer, &Claim{Expected: time.Hour}, time.Hour)
		s := b.Of(&trainer, &Claim{Expected: time.Hour})
		if left := s.Left(time.Hour); left[0] > left[len(left)-1] {
			t.Fatalf("not a distribution: %v", left)
		}
	})
}

func BenchmarkLeft(b *testing.B) {
	book := randomBook(rand.New(rand.NewPCG(6, 1)), 2000)
	for b.Loop() {
		s := book.Of(&trainer, &Claim{})
		s.Left(time.Hour)
	}
}

func BenchmarkEnded(b *testing.B) {
	book := NewBook()
	for i := 0; b.Loop(); i++ {
		class := Class{Namespace: fmt.Sprint(i % 7), Controller: fmt.Sprint(i), GPUs: i % 8}
		book.Ended(&class, &Claim{}, time.Hour)
	}
}
