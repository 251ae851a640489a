package yamldoc

import (
	"bytes"
	"encoding/json"
)

// Document is a document of a file.
type Document struct {
	// First is the line of the file in which it begins, from 1.
	First int
	Text  []byte
}

// Split returns the documents that are not empty. They are separated by the marks of YAML, or follow each other as
// objects in JSON. A YAML parser would only read the first one.
func Split(data []byte) []Document {
	var documents []Document
	current, content, number := Document{First: 1}, false, 0
	begin := 0
	end := func(upTo int) {
		if content {
			current.Text = data[begin:upTo]
			documents = append(documents, current.objects()...)
		}
	}
	for at := 0; at < len(data); {
		length := lineLength(data[at:])
		line := data[at : at+length]
		number++
		if rest, marks := afterMark(line); marks {
			end(at)
			current, content, begin = Document{First: number}, !isBlank(rest), at+length-len(rest)
		} else if !isBlank(line) {
			content = true
		}
		at += length
	}
	end(len(data))
	return documents
}

// afterMark returns the rest of a line after a mark between documents, and whether there is a mark.
func afterMark(line []byte) (rest []byte, marks bool) {
	if rest, begins := bytes.CutPrefix(line, []byte("---")); begins &&
		(isBlank(rest) || rest[0] == ' ' || rest[0] == '\t') {
		return rest, true
	}
	rest, ends := bytes.CutPrefix(line, []byte("..."))
	return rest, ends && isBlank(rest)
}

// objects returns consecutive objects in JSON, as jq prints them, and the rest after them.
func (d Document) objects() []Document {
	var objects []Document
	for {
		d = d.withoutBlanks()
		if len(d.Text) == 0 {
			return objects
		}
		var object json.RawMessage
		decoder := json.NewDecoder(bytes.NewReader(d.Text))
		if d.Text[0] != '{' || decoder.Decode(&object) != nil {
			return append(objects, d) // YAML, or a mistake that its parser reports
		}
		length := int(decoder.InputOffset())
		objects = append(objects, Document{First: d.First, Text: d.Text[:length]})
		d = Document{First: d.First + bytes.Count(d.Text[:length], []byte{'\n'}), Text: d.Text[length:]}
	}
}

// withoutBlanks leaves out empty lines and comments at the beginning.
func (d Document) withoutBlanks() Document {
	d.Text = bytes.TrimPrefix(d.Text, []byte("\ufeff"))
	for len(d.Text) > 0 {
		length := lineLength(d.Text)
		if !isBlank(d.Text[:length]) {
			break
		}
		d.First += bytes.Count(d.Text[:length], []byte{'\n'})
		d.Text = d.Text[length:]
	}
	if trimmed := bytes.TrimLeft(d.Text, " \t"); len(trimmed) > 0 && trimmed[0] == '{' {
		d.Text = trimmed
	}
	return d
}

// lineLength is the length of the first line with its line break.
func lineLength(data []byte) int {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1
	}
	return len(data)
}

// isBlank reports whether a line is empty or a comment.
func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}
