package separate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxPipeBytes bounds what is kept of one pipe.
const maxPipeBytes = 256 << 20

// Pipes keeps what comes out of pipes, which have it for one reader, for the processes that read it again. The
// content is in memory until the last moment: reading a pipe cannot be interrupted, and a file would be left then.
type Pipes struct {
	content map[string][]byte
}

// Open opens a file, or what a pipe of that name has had.
func (p *Pipes) Open(path string) (io.ReadCloser, error) {
	data, kept := p.content[path]
	if !kept {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil || info.IsDir() || info.Mode().IsRegular() && !ofThisProcess(path) {
			return file, err
		}
		defer file.Close()
		data, err = io.ReadAll(io.LimitReader(file, maxPipeBytes+1))
		if err != nil {
			return nil, err
		}
		if len(data) > maxPipeBytes {
			return nil, fmt.Errorf("%s: more than %d MiB comes from it; must be a regular file", path, maxPipeBytes>>20)
		}
		if p.content == nil {
			p.content = map[string][]byte{}
		}
		p.content[path] = data
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// ofThisProcess says whether a path may name another file for another process, as /dev/stdin does.
func ofThisProcess(path string) bool {
	path = filepath.Clean(path)
	return strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
}

// Write writes what was kept to temporary files, each by the last part of its name, which reports show, and returns
// them by the names of the pipes. The caller removes them.
func (p *Pipes) Write() (files map[string]string, remove func(), err error) {
	if len(p.content) == 0 {
		return nil, func() {}, nil
	}
	folder, err := os.MkdirTemp("", "berth-compare-")
	if err != nil {
		return nil, func() {}, fmt.Errorf("keeping what came from a pipe: %w", err)
	}
	remove = func() { _ = os.RemoveAll(folder) }
	files = map[string]string{}
	for path, data := range p.content {
		own := filepath.Join(folder, strconv.Itoa(len(files)))
		files[path] = filepath.Join(own, filepath.Base(path))
		if err := errors.Join(os.Mkdir(own, 0o700), os.WriteFile(files[path], data, 0o600)); err != nil {
			return nil, remove, fmt.Errorf("keeping what came from a pipe: %w", err)
		}
	}
	return files, remove, nil
}
