package validate

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extensions of the files that are read of a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// ReadFolder reads the files of YAML or JSON in a folder and in the folders in it. What begins with a dot is left out.
func (r *Report) ReadFolder(root string) error {
	found := false
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != root && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return filepath.SkipDir
		case entry.IsDir() || hidden || !slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		found = true
		return r.ReadFile(path)
	})
	if err != nil {
		return fmt.Errorf("reading the folder: %w", err)
	}
	if !found {
		return fmt.Errorf("%s: there is no file that ends in .yaml, .yml or .json in the folder", root)
	}
	return nil
}

// ReadFile reads a file, or a folder.
func (r *Report) ReadFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	if info.IsDir() {
		return r.ReadFolder(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	defer file.Close()
	return r.Read(file, path)
}
