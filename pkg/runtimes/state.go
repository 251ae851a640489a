package runtimes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The state is the version and the number of changes, followed by the records in the order of their keys: the key, the
// namespace, when it last changed, the width, the number of runs, and the runs. Numbers are big-endian.
const (
	version     = 1
	headerBytes = 1 + 8
	recordBytes = len(key{}) + 4 + 8 + 2
)

func (r *record) bytes() int {
	n := recordBytes + 2*len(r.runs)
	if r.of == 0 {
		n += 4 * len(r.runs)
	}
	return n
}

// MarshalBinary writes the book, in at most 256 KiB.
func (b *Book) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, headerBytes+b.bytes)
	out = append(out, version)
	out = binary.BigEndian.AppendUint64(out, b.changes)
	for _, k := range slices.SortedFunc(maps.Keys(b.records), func(a, b key) int { return bytes.Compare(a[:], b[:]) }) {
		r := b.records[k]
		out = append(out, k[:]...)
		out = binary.BigEndian.AppendUint32(out, uint32(r.of))
		out = binary.BigEndian.AppendUint64(out, r.used)
		out = binary.BigEndian.AppendUint16(out, uint16(len(r.runs)))
		for _, o := range r.runs {
			out = binary.BigEndian.AppendUint16(out, uint16(o.length))
			if r.of == 0 {
				out = binary.BigEndian.AppendUint32(out, uint32(o.owner))
			}
		}
	}
	return out, nil
}

var (
	errVersion = errors.New("unknown version")
	errState   = errors.New("damaged state")
)

// UnmarshalBinary replaces the book by what was written. After an error it is as before.
func (b *Book) UnmarshalBinary(data []byte) error {
	if len(data) < headerBytes || len(data) > mostBytes {
		return fmt.Errorf("reading run times of %d bytes: %w", len(data), errState)
	}
	if data[0] != version {
		return fmt.Errorf("reading run times of version %d: %w", data[0], errVersion)
	}
	read := NewBook()
	read.changes = binary.BigEndian.Uint64(data[1:])
	var last key
	for rest := data[headerBytes:]; len(rest) > 0; {
		k, r, n := readRecord(rest)
		if r == nil || len(read.records) > 0 && bytes.Compare(k[:], last[:]) <= 0 || r.used > read.changes {
			return fmt.Errorf("reading run times at byte %d: %w", len(data)-len(rest), errState)
		}
		read.records[k], last = r, k
		read.resize(r, n)
		rest = rest[n:]
	}
	*b = *read
	return nil
}

// readRecord returns the record at the beginning of the data and its size there, none if there is no whole one.
func readRecord(data []byte) (key, *record, int) {
	if len(data) < recordBytes {
		return key{}, nil, 0
	}
	k := key(data)
	at := data[len(k):]
	r := &record{of: owner(binary.BigEndian.Uint32(at)), used: binary.BigEndian.Uint64(at[4:])}
	runs := int(binary.BigEndian.Uint16(at[12:]))
	size := 2
	if r.of == 0 {
		size += 4
	}
	at = at[14:]
	if runs == 0 || runs > slices.Max(window[:]) || len(at) < runs*size {
		return key{}, nil, 0
	}
	for ; runs > 0; runs-- {
		o := run{length: length(int16(binary.BigEndian.Uint16(at)))}
		if r.of == 0 {
			o.owner = owner(binary.BigEndian.Uint32(at[2:]))
		}
		if o.length < shortest || o.length > longest {
			return key{}, nil, 0
		}
		r.runs = append(r.runs, o)
		r.sorted = append(r.sorted, o.length)
		at = at[size:]
	}
	slices.Sort(r.sorted)
	return k, r, r.bytes()
}
