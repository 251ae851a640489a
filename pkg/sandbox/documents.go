package sandbox

import (
	"bytes"
	"encoding/json"
)

// document is one of a file of nodes.
type document struct {
	// first is the line of the file in which it begins, from 1.
	first int
	text  []byte
}

// splitDocuments returns the documents that have any content. A parser of YAML reads the first document alone, so all
// that can begin another is looked for: the marks of YAML, and the end of an object in JSON.
func splitDocuments(data []byte) []document {
	var documents []document
	current, content, number := document{first: 1}, false, 0
	begin := 0
	end := func(upTo int) {
		if content {
			current.text = data[begin:upTo]
			documents = append(documents, current.objects()...)
		}
	}
	for at := 0; at < len(data); {
		length := lineLength(data[at:])
		line := data[at : at+length]
		number++
		if rest, marks := afterMark(line); marks {
			end(at)
			current, content, begin = document{first: number}, !isBlank(rest), at+length-len(rest)
		} else if !isBlank(line) {
			content = true
		}
		at += length
	}
	end(len(data))
	return documents
}

// afterMark returns what follows a mark between two documents in its line.
func afterMark(line []byte) (rest []byte, marks bool) {
	if rest, begins := bytes.CutPrefix(line, []byte("---")); begins &&
		(isBlank(rest) || rest[0] == ' ' || rest[0] == '\t') {
		return rest, true
	}
	rest, ends := bytes.CutPrefix(line, []byte("..."))
	return rest, ends && isBlank(rest)
}

// objects returns the objects in JSON that follow each other, as jq prints them, and what is left after them.
func (d document) objects() []document {
	var objects []document
	for {
		d = d.withoutBlanks()
		if len(d.text) == 0 {
			return objects
		}
		var object json.RawMessage
		decoder := json.NewDecoder(bytes.NewReader(d.text))
		if d.text[0] != '{' || decoder.Decode(&object) != nil {
			return append(objects, d) // YAML, or a mistake that its parser names
		}
		length := int(decoder.InputOffset())
		objects = append(objects, document{first: d.first, text: d.text[:length]})
		d = document{first: d.first + bytes.Count(d.text[:length], []byte{'\n'}), text: d.text[length:]}
	}
}

// withoutBlanks leaves out the lines at the beginning that say nothing.
func (d document) withoutBlanks() document {
	d.text = bytes.TrimPrefix(d.text, []byte("\ufeff"))
	for len(d.text) > 0 {
		length := lineLength(d.text)
		if !isBlank(d.text[:length]) {
			break
		}
		d.first += bytes.Count(d.text[:length], []byte{'\n'})
		d.text = d.text[length:]
	}
	if trimmed := bytes.TrimLeft(d.text, " \t"); len(trimmed) > 0 && trimmed[0] == '{' {
		d.text = trimmed
	}
	return d
}

// lineLength is that of the first line with its end.
func lineLength(data []byte) int {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1
	}
	return len(data)
}

// isBlank tells whether there is nothing but a comment.
func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}
