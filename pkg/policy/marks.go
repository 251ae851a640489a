package policy

import (
	"encoding/binary"
	"sync"
)

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// Marks say which node sets of a Set a node is in. Nodes that are in the same ones share their marks.
type Marks struct {
	in bits
	// failed are the sets for which the node cannot be evaluated, ignored those of them that their policies leave out
	// then.
	failed, ignored bits
	key             string
}

// holds reports whether the node is in the set.
func (m *Marks) holds(set int) bool { return set == everywhere || m.in.has(set) }

// mayHold reports whether the node is in the set or may be.
func (m *Marks) mayHold(set int) bool {
	return m == nil || set == everywhere || m.in.has(set) || m.failed.has(set) || m.ignored.has(set)
}

// Key tells marks of one Set apart.
func (m *Marks) Key() string { return m.key }

// marksTable keeps one of all marks that are equal.
type marksTable struct {
	mu    sync.Mutex
	known map[string]*Marks
}

func (t *marksTable) intern(m *Marks) *Marks {
	key := make([]byte, 0, 24*len(m.in))
	for _, part := range [...]bits{m.in, m.failed, m.ignored} {
		for _, word := range part {
			key = binary.LittleEndian.AppendUint64(key, word)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.known[string(key)]; ok {
		return known
	}
	m.key = string(key)
	t.known[m.key] = m
	return m
}
