package runtimes

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

const (
	// mostBytes bounds the state of a book, as it is written.
	mostBytes = 256 << 10
	// enough is how many runs have to be known before the forecasts mean anything.
	enough = 8
	// outlived is how many times what was declared counts for a pod that still runs when it should have ended long ago.
	outlived = 4
)

// Book is what has been learned of run times. It is not safe for concurrent use.
type Book struct {
	records map[key]*record
	// bytes is the size of the state, changes counts the runs that were noted.
	bytes   int
	changes uint64
	// held is how many bytes of it are of each namespace, 0 for classes that span namespaces.
	held map[owner]int
}

// NewBook returns an empty book.
func NewBook() *Book { return &Book{records: map[key]*record{}, held: map[owner]int{}} }

// Knows reports whether enough runs are known for forecasts without a declaration.
func (b *Book) Knows() bool {
	r := b.records[(&Class{}).key(anyPod, bySecond)]
	return r != nil && len(r.runs) >= enough
}

// Learned counts what was noted so far, also in books that were read.
func (b *Book) Learned() uint64 { return b.changes }

// Ended notes that a pod ended on its own after this time. Pods that were evicted or deleted say nothing.
func (b *Book) Ended(class *Class, claim *Claim, ran time.Duration) {
	if claim.endless() {
		return
	}
	s, unit := claim.unit()
	if s != bySecond {
		b.note(class, s, lengthOf(float64(ran)/float64(unit)))
	}
	b.note(class, bySecond, lengthOf(ran.Seconds()))
}

// Outlived reports whether a pod that has run for this time has outlived what it declared so far that this is to be
// noted at once, see NoteOutlived. Otherwise many pods could declare too little before the first of them ends.
func (c *Claim) Outlived(age time.Duration) bool {
	return c.Expected > 0 && age > c.Expected+c.Expected/4+time.Minute
}

// NoteOutlived notes that a pod still runs although it should have ended. It is called once for a pod; the end of the
// pod is noted, too.
func (b *Book) NoteOutlived(class *Class) {
	b.note(class, byExpected, lengthOf(outlived))
}

// note adds one run to the class and all wider ones.
func (b *Book) note(class *Class, s scale, l length) {
	b.changes++
	by := ownerOf(class.Namespace)
	for w := range widths {
		k := class.key(w, s)
		r := b.records[k]
		if r == nil {
			r = &record{}
			if !w.shared() {
				r.of = by
			}
			b.records[k] = r
			b.resize(r, recordBytes)
		}
		before := r.bytes()
		next := run{length: l}
		if w.shared() {
			next.owner = by
		}
		r.add(next, window[w])
		r.used = b.changes
		b.resize(r, r.bytes()-before)
	}
	for b.bytes > mostBytes-headerBytes {
		b.forget()
	}
}

// resize accounts for a record that has grown.
func (b *Book) resize(r *record, by int) {
	b.bytes += by
	if b.held[r.of] += by; b.held[r.of] == 0 {
		delete(b.held, r.of)
	}
}

// forget drops the classes of the namespace that holds the most which have not changed for the longest time, an eighth
// of all that it holds. Classes that span namespaces go only if they hold more than half of what is allowed: anyone can
// ask for unusual numbers of GPUs.
func (b *Book) forget() {
	var from owner
	most := 0
	for of, size := range b.held {
		if of != 0 && (size > most || size == most && of < from) {
			from, most = of, size
		}
	}
	if b.held[0] > mostBytes/2 {
		from, most = 0, b.held[0]
	}
	var found []key
	for k, r := range b.records {
		if r.of == from {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(x, y key) int {
		return cmp.Or(cmp.Compare(b.records[x].used, b.records[y].used), bytes.Compare(x[:], y[:]))
	})
	for _, k := range found {
		if b.held[from] <= most-most/8-1 {
			return
		}
		r := b.records[k]
		delete(b.records, k)
		b.resize(r, -r.bytes())
	}
}
